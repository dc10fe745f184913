// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";

/// @notice The functions of `Float32` on many cases of three words behind a primitive's code, as `.ci/mutation/bulk.py`
/// sends them.
contract Batch {
    fallback() external {
        uint256 code = uint8(msg.data[0]);
        uint256 count = msg.data.length / 12;
        bytes memory results = new bytes(32 * count);
        for (uint256 i = 0; i < count; ++i) {
            uint256 words = uint96(bytes12(msg.data[12 * i + 1:]));
            uint256 result = _execute(code, uint32(words >> 64), uint32(words >> 32), uint32(words));
            assembly {
                mstore(add(add(results, 32), mul(32, i)), result)
            }
        }
        assembly {
            return(add(results, 32), mload(results))
        }
    }

    function _execute(uint256 code, uint256 a, uint256 b, uint256 c) private pure returns (uint256) {
        if (code == 0x01) return Float32.add(a, b);
        if (code == 0x02) return Float32.sub(a, b);
        if (code == 0x03) return Float32.mul(a, b);
        if (code == 0x04) return Float32.div(a, b);
        if (code == 0x05) return Float32.fma(a, b, c);
        if (code == 0x06) return Float32.sqrt(a);
        if (code == 0x07) return Float32.min(a, b);
        if (code == 0x08) return Float32.max(a, b);
        if (code == 0x09) return Float32.eq(a, b) ? 1 : 0;
        if (code == 0x0a) return Float32.lt(a, b) ? 1 : 0;
        if (code == 0x0b) return Float32.le(a, b) ? 1 : 0;
        if (code == 0x0c) return Float32.neg(a);
        if (code == 0x0d) return Float32.abs(a);
        if (code == 0x0e) return Float32.rint(a);
        if (code == 0x10) return Float32.toInt(a);
        return Float32.fromInt(a);
    }
}
