// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Chunk, Demand} from "../../../contracts/commitments/ILearningLog.sol";
import {LearningLog} from "../../../contracts/commitments/LearningLog.sol";
import {Base} from "../Base.sol";

/// @notice Gas of the calls of the learning log, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without calldata and the
/// 21,000 of a transaction. Sizes are those of a real training: a log of 2^16 entries, 1,024 entries in a state, an array of 2^20 leaves.
contract LearningLogGas is Base {
    bytes32 private constant RUN = "run";
    uint64 private constant SIZE = 2 ** 16;

    LearningLog private logs = new LearningLog();
    bytes32 private id;
    bytes32[] private path;
    Demand private demanded;
    Chunk private chunk;

    function setUp() public {
        vm.warp(1_800_000_000);
        vm.deal(address(this), 100 ether);
        id = logs.open{value: 1 ether}(RUN, 1 days, 30 days, 0);
        chunk.name = "optimizer/state/128/exp_avg";
        chunk.form = abi.encodePacked(hex"020102", uint32(2 ** 13), uint32(2 ** 13));
        chunk.leaf = new bytes(256);
        chunk.count = 1024;
        bytes32 hash = keccak256(abi.encodePacked(uint8(0), chunk.leaf));
        // Position and leaf 0: every sibling is on the right.
        for (uint256 i = 0; i < 20; ++i) {
            chunk.branch.push(bytes32(i));
            hash = keccak256(abi.encodePacked(uint8(1), hash, bytes32(i)));
        }
        hash = keccak256(abi.encodePacked(chunk.form, hash));
        hash = keccak256(abi.encodePacked(uint8(13), uint16(chunk.name.length), chunk.name, hash));
        for (uint256 i = 0; i < 10; ++i) {
            chunk.entryBranch.push(bytes32(i));
            hash = keccak256(abi.encodePacked(uint8(1), hash, bytes32(i)));
        }
        hash = keccak256(abi.encodePacked(uint8(12), chunk.count, hash));
        hash = sha256(abi.encodePacked(uint8(0), hash));
        for (uint256 i = 0; i < 16; ++i) {
            chunk.logPath.push(bytes32(i));
            hash = sha256(abi.encodePacked(uint8(1), hash, bytes32(i)));
        }
        logs.post(id, SIZE, hash, path);
        uint64 deadline = uint64(vm.getBlockTimestamp()) + 1 days;
        demanded = Demand(id, hash, SIZE, 0, 0, 0, address(this), deadline, 1 ether);
        logs.demand{value: 1 ether}(id, 0, 0, 0);
        // From 2^16 entries to one more: the old root and one leaf.
        path.push("new leaf");
    }

    function test_log_open() public {
        _cool();
        logs.open{value: 1 ether}("other", 1 days, 30 days, 1);
    }

    function test_log_post() public {
        bytes32 root = sha256(abi.encodePacked(uint8(1), demanded.logRoot, path[0]));
        _cool();
        logs.post(id, SIZE + 1, root, path);
    }

    function test_log_demand() public {
        _cool();
        logs.demand{value: 1 ether}(id, 1, 2, 3);
    }

    function test_log_answer() public {
        (Demand memory d, Chunk memory c) = (demanded, chunk);
        _cool();
        logs.answer(d, c);
    }

    function test_log_expire() public {
        Demand memory d = demanded;
        vm.warp(d.deadline + 1);
        _cool();
        logs.expire(d);
    }

    function _cool() private {
        vm.cool(address(logs));
    }
}
