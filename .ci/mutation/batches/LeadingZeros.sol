// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {leadingZeros, leadingZerosNear} from "../../../contracts/arithmetic/LeadingZeros.sol";

/// @notice Leading zeros of many words, searched everywhere and near a place: pairs of words.
contract Batch {
    fallback() external {
        bytes memory results = new bytes(msg.data.length);
        for (uint256 at = 0; at < msg.data.length; at += 64) {
            uint256 value;
            uint256 near;
            assembly {
                value := calldataload(at)
                near := calldataload(add(at, 32))
            }
            uint256 one = leadingZeros(value);
            uint256 other = leadingZerosNear(value, near);
            assembly {
                mstore(add(add(results, 32), at), one)
                mstore(add(add(results, 64), at), other)
            }
        }
        assembly {
            return(add(results, 32), mload(results))
        }
    }
}
