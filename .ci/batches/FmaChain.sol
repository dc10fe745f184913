// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {FmaChain} from "../../contracts/arithmetic/FmaChain.sol";

/// @notice Many chains of `count` terms: the count in two bytes, then for each chain its start and the little-endian operands. They lie
/// at odd places in memory.
contract Batch {
    fallback() external {
        uint256 count = uint16(bytes2(msg.data));
        uint256 size = 4 + 8 * count;
        bytes memory results = new bytes((msg.data.length - 2) / size * 32);
        bytes memory copy = new bytes(size + 64);
        for (uint256 i = 0; i < results.length / 32; ++i) {
            uint256 from = 2 + size * i;
            uint256 start = uint32(bytes4(msg.data[from:]));
            uint256 a;
            uint256 b;
            assembly {
                a := add(copy, 33)
                calldatacopy(a, add(from, 4), mul(4, count))
                b := add(add(copy, 67), mul(4, count))
                calldatacopy(b, add(add(from, 4), mul(4, count)), mul(4, count))
            }
            uint256 result = FmaChain.run(start, a, b, count);
            assembly {
                mstore(add(add(results, 32), mul(32, i)), result)
            }
        }
        assembly {
            return(add(results, 32), mload(results))
        }
    }
}
