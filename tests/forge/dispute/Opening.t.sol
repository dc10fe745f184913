// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {TypeView} from "../../../contracts/dispute/Descriptor.sol";
import {Openings} from "../../../contracts/dispute/Opening.sol";
import {PackedReader} from "../../../contracts/dispute/PackedReader.sol";
import {Base} from "../Base.sol";

/// @notice Openings from calldata, of a vector with so many elements.
contract OpeningsReader {
    function leavesOf(bytes calldata data, bytes calldata descriptor, uint256 elements, uint256 index)
        external
        pure
        returns (bytes calldata leaves, bytes32 root)
    {
        return Openings.leavesOf(PackedReader.over(data), TypeView(0, 6, 1, elements), index, descriptor);
    }
}

/// @notice What a chunk that stays in its tensor never asks for; all else of openings: Operands.t.sol and Chunk.t.sol.
contract OpeningTest is Base {
    function test_the_second_leaf_is_past_the_end() public {
        OpeningsReader reader = new OpeningsReader();
        bytes memory tensorType = abi.encodePacked(uint8(1), uint8(1), uint32(130));
        bytes memory leaves = new bytes(512);
        // Leaves 1 and 2 of three, beside the first one and padding.
        reader.leavesOf(abi.encodePacked(leaves, new bytes(64)), tensorType, 130, 1);
        for (uint256 index = 2; index < 4; index++) {
            vm.expectRevert(abi.encodeWithSelector(MerkleBranch.IndexOutOfRange.selector, index + 1, 3));
            reader.leavesOf(abi.encodePacked(leaves, new bytes(64)), tensorType, 130, index);
        }
    }
}
