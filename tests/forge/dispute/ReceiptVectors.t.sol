// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TAG_RECEIPT} from "../../../contracts/commitments/MerkleBranch.sol";
import {ReceiptStart} from "../../../contracts/dispute/ReceiptStart.sol";
import {Base} from "../Base.sol";

/// @notice Seeds, draws and receipts are what `pol.commitments.receipt` computes.
contract ReceiptVectorsTest is Base {
    function test_drawsAndReceipts() public view {
        string memory json = vm.readFile("fixtures/vectors/receipts.json");
        bytes32[] memory draws = vm.parseJsonBytes32Array(json, ".draw");
        bytes32[] memory seeds = vm.parseJsonBytes32Array(json, ".seed");
        bytes32[] memory roots = vm.parseJsonBytes32Array(json, ".roots");
        bytes32[] memory receipts = vm.parseJsonBytes32Array(json, ".receipt");
        uint256[] memory segments = vm.parseJsonUintArray(json, ".segment");
        uint256[] memory nodes = vm.parseJsonUintArray(json, ".nodes");
        uint256[] memory drawn = vm.parseJsonUintArray(json, ".drawn");
        vm.assertGt(seeds.length, 0);
        for (uint256 i = 0; i < seeds.length; ++i) {
            vm.assertEq(keccak256(abi.encodePacked(draws[i], uint32(segments[i]))), seeds[i]);
            bytes memory hashed = abi.encodePacked(TAG_RECEIPT);
            for (uint256 place = 0; place < ReceiptStart.NODES; ++place) {
                uint256 at = ReceiptStart.NODES * i + place;
                vm.assertEq(ReceiptStart.drawn(seeds[i], place, nodes[i]), drawn[at]);
                hashed = abi.encodePacked(hashed, roots[at]);
            }
            vm.assertEq(keccak256(hashed), receipts[i]);
        }
    }
}
