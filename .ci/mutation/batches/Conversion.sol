// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Conversion} from "../../../contracts/arithmetic/Conversion.sol";

/// @notice As Float32.sol beside this file, for `Conversion`.
contract Batch {
    fallback() external {
        uint256 code = uint8(msg.data[0]);
        uint256 count = msg.data.length / 12;
        bytes memory results = new bytes(32 * count);
        for (uint256 i = 0; i < count; ++i) {
            uint256 words = uint96(bytes12(msg.data[12 * i + 1:]));
            uint256 result = _execute(code, uint32(words >> 64), uint32(words >> 32));
            assembly {
                mstore(add(add(results, 32), mul(32, i)), result)
            }
        }
        assembly {
            return(add(results, 32), mload(results))
        }
    }

    function _execute(uint256 code, uint256 a, uint256 b) private pure returns (uint256) {
        if (code == 0x12) return Conversion.toU32(a);
        if (code == 0x13) return Conversion.fromU32(a);
        if (code == 0x14) return Conversion.toI64(a) >> 32;
        if (code == 0x15) return Conversion.toI64(a) & 0xffffffff;
        if (code == 0x16) return Conversion.fromI64((a << 32) | b);
        if (code == 0x17) return Conversion.toBf16(a);
        return Conversion.toF16(a);
    }
}
