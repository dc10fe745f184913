// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Chunk, Demand} from "../../../contracts/commitments/ILearningLog.sol";
import {LearningLog} from "../../../contracts/commitments/LearningLog.sol";
import {Base} from "../Base.sol";

/// @notice Gas of the calls of the learning log, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without
/// calldata and the 21,000 of a transaction. Sizes are those of a real training: a log of 2^16 entries, 1,024 entries
/// in a state, an array of 2^20 leaves.
contract LearningLogGas is Base {
    bytes32 private constant RUN = "run";
    uint64 private constant SIZE = 2 ** 16;

    LearningLog private logs = new LearningLog();
    bytes32 private id;
    bytes32 private root;
    uint64 private deadline;

    function setUp() public {
        vm.warp(1_800_000_000);
        vm.deal(address(this), 100 ether);
        id = logs.open{value: 1 ether}(RUN, 1 days, 30 days, 0);
        Chunk memory chunk = _chunk();
        // Position and leaf 0: every sibling is on the right.
        bytes32 hash = keccak256(abi.encodePacked(uint8(0), chunk.leaf));
        for (uint256 i = 0; i < chunk.branch.length; ++i) {
            hash = keccak256(abi.encodePacked(uint8(1), hash, chunk.branch[i]));
        }
        hash = keccak256(abi.encodePacked(chunk.form, hash));
        hash = keccak256(abi.encodePacked(uint8(13), uint16(chunk.name.length), chunk.name, hash));
        for (uint256 i = 0; i < chunk.entryBranch.length; ++i) {
            hash = keccak256(abi.encodePacked(uint8(1), hash, chunk.entryBranch[i]));
        }
        hash = sha256(abi.encodePacked(uint8(0), keccak256(abi.encodePacked(uint8(12), chunk.count, hash))));
        for (uint256 i = 0; i < chunk.logPath.length; ++i) {
            hash = sha256(abi.encodePacked(uint8(1), hash, chunk.logPath[i]));
        }
        root = hash;
        logs.post(id, SIZE, hash, new bytes32[](0));
        deadline = uint64(vm.getBlockTimestamp()) + 1 days;
        logs.demand{value: 1 ether}(id, 0, 0, 0);
    }

    function test_log_open() public {
        _cool();
        logs.open{value: 1 ether}("other", 1 days, 30 days, 1);
    }

    function test_log_post() public {
        bytes32[] memory path = new bytes32[](1);
        path[0] = "new leaf";
        bytes32 longer = sha256(abi.encodePacked(uint8(1), root, path[0]));
        _cool();
        logs.post(id, SIZE + 1, longer, path);
    }

    function test_log_demand() public {
        _cool();
        logs.demand{value: 1 ether}(id, 1, 2, 3);
    }

    function test_log_answer() public {
        (Demand memory d, Chunk memory c) = (_demanded(), _chunk());
        _cool();
        logs.answer(d, c);
    }

    function test_log_expire() public {
        Demand memory d = _demanded();
        vm.warp(d.deadline + 1);
        _cool();
        logs.expire(d);
    }

    function _demanded() private view returns (Demand memory) {
        return Demand(id, root, SIZE, 0, 0, 0, address(this), deadline, 1 ether);
    }

    function _chunk() private pure returns (Chunk memory chunk) {
        chunk.name = "optimizer/state/128/exp_avg";
        chunk.form = abi.encodePacked(hex"020102", uint32(2 ** 13), uint32(2 ** 13));
        chunk.leaf = new bytes(256);
        chunk.count = 1024;
        chunk.branch = new bytes32[](20);
        chunk.entryBranch = new bytes32[](10);
        chunk.logPath = new bytes32[](16);
    }

    function _cool() private {
        vm.cool(address(logs));
    }
}
