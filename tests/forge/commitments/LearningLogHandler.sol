// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Chunk, Demand, ILearningLog, Run, RunStatus} from "../../../contracts/commitments/ILearningLog.sol";
import {LearningLogBase} from "./LearningLogBase.sol";
import {NaiveLog} from "./NaiveLog.sol";

/// @notice Drives up to six runs through what is allowed, and throws what is not at them.
contract LearningLogHandler is LearningLogBase {
    uint256 public deposited;
    uint256 public withdrawn;
    uint256 public burned;
    uint256 public answered;
    uint256 public slashed;
    uint256 public closed;
    uint256 public intrusions;

    address[3] private _parties;
    bytes32[] private _ids;
    Demand[] private _demands;
    mapping(bytes32 id => uint256) private _openOf;
    uint256 private _now = START;

    constructor() {
        setUp();
        _parties = [publisher, demander, stranger];
        burned = address(0).balance;
    }

    /// @dev Time that a call sets is forgotten after it, so every call begins by setting it again.
    modifier timed() {
        vm.warp(_now);
        vm.fee(BASE_FEE);
        _;
    }

    function _roots(uint256 size) internal pure override returns (bytes32[] memory roots) {
        roots = new bytes32[](size);
        for (uint256 i = 0; i < size; ++i) {
            roots[i] = keccak256(abi.encodePacked(uint8(12), uint32(1), _only(i)));
        }
    }

    /// @dev The one entry of state `i`: a document of `i + 1` bytes.
    function _only(uint256 i) private pure returns (bytes32) {
        bytes32 leaf = keccak256(abi.encodePacked(uint8(0), _leaf(_bytes(i, i + 1), 0)));
        bytes32 content = keccak256(abi.encodePacked(_document(i + 1), leaf));
        return keccak256(abi.encodePacked(uint8(13), uint16(1), "d", content));
    }

    function start(uint256 stake) external timed {
        if (_ids.length == 6) return;
        stake = bound(stake, 0, 1 ether);
        deposited += stake;
        vm.deal(publisher, stake);
        vm.prank(publisher);
        _ids.push(logs.open{value: stake}(bytes32(_ids.length + 1), 1 hours, 2 days, PRICE));
    }

    function extend(uint256 which) external timed {
        if (!_choose(which)) return;
        Run memory r = logs.runOf(id);
        if (r.status == RunStatus.Open && r.size < 12) _post(r.size + 1 + uint64(which >> 8) % 3);
    }

    function ask(uint256 which, uint32 position, uint64 leaf, uint256 who) external timed {
        if (!_choose(which)) return;
        Run memory r = logs.runOf(id);
        if (r.status != RunStatus.Open || r.size == 0 || _now > r.posted + r.exitDelay) return;
        demander = _parties[who % 3];
        vm.deal(demander, BOND);
        uint64 index = uint64((which >> 16) % r.size);
        Demand memory d = Demand(id, r.logRoot, r.size, index, position, leaf, demander, uint64(_now) + r.window, BOND);
        if (logs.isOpen(keccak256(abi.encode(d)))) return;
        _demand(index, position, leaf);
        deposited += BOND;
        _demands.push(d);
        ++_openOf[id];
    }

    function reply(uint256 which, bool byStranger) external timed {
        if (_demands.length == 0) return;
        Demand memory d = _demands[which % _demands.length];
        if (_now > d.deadline) return;
        byStranger = byStranger && _now > d.deadline - 30 minutes;
        Chunk memory chunk = _answerTo(d);
        vm.prank(byStranger ? stranger : publisher);
        logs.answer(d, chunk);
        ++answered;
        _remove(which % _demands.length);
    }

    function lapse(uint256 which) external timed {
        if (_demands.length == 0) return;
        Demand memory d = _demands[which % _demands.length];
        if (_now <= d.deadline) return;
        if (logs.runOf(d.id).status == RunStatus.Open) ++slashed;
        logs.expire(d);
        _remove(which % _demands.length);
    }

    function leave(uint256 which) external timed {
        if (!_choose(which)) return;
        Run memory r = logs.runOf(id);
        if (r.status != RunStatus.Open || r.open > 0 || _now <= r.posted + r.exitDelay) return;
        vm.prank(publisher);
        logs.close(id);
        ++closed;
    }

    function withdraw(uint256 who) external timed {
        address party = _parties[who % 3];
        uint256 amount = logs.credits(party);
        if (amount == 0) return;
        vm.prank(party);
        logs.withdraw();
        withdrawn += amount;
    }

    function pass(uint256 time) external timed {
        _now += bound(time, 1, time % 8 == 0 ? 3 days : 40 minutes);
    }

    /// @notice Somebody calls something at some time; it may work or not, but no wei may move wrongly.
    function intrude(uint256 which, uint256 what, uint256 who) external timed {
        if (_demands.length == 0) return;
        uint256 i = which % _demands.length;
        Demand memory d = _demands[i];
        if (what % 7 == 0) d.bond += 1 ether;
        if (what % 7 == 1) d.demander = address(this);
        if (what % 7 == 2) d.deadline -= 2 hours;
        bytes memory call =
            what % 2 == 0 ? abi.encodeCall(logs.expire, (d)) : abi.encodeCall(logs.answer, (d, _answerTo(d)));
        if (what % 7 == 3) call = abi.encodeCall(logs.close, (d.id));
        if (what % 7 == 4) call = abi.encodeCall(logs.post, (d.id, 1, "x", new bytes32[](0)));
        bool wasOpen = logs.runOf(d.id).status == RunStatus.Open;
        vm.prank(_parties[who % 3]);
        (bool worked,) = address(logs).call(call);
        ++intrusions;
        if (!worked || what % 7 == 3) return;
        // Only what is right can have worked.
        vm.assertTrue(what % 7 > 4);
        if (what % 2 == 1) ++answered;
        else if (wasOpen) ++slashed;
        _remove(i);
    }

    /// @notice What the contract holds for somebody.
    function owed() external view returns (uint256 total) {
        for (uint256 i = 0; i < 3; ++i) {
            total += logs.credits(_parties[i]);
        }
        for (uint256 i = 0; i < _ids.length; ++i) {
            total += logs.runOf(_ids[i]).stake;
        }
        for (uint256 i = 0; i < _demands.length; ++i) {
            total += _demands[i].bond;
            vm.assertTrue(logs.isOpen(keccak256(abi.encode(_demands[i]))));
        }
    }

    function held() external view returns (uint256) {
        return address(logs).balance;
    }

    function gone() external view returns (uint256) {
        return withdrawn + address(0).balance - burned;
    }

    /// @notice Every run counts its open demands, and one that is not open has no stake.
    function requireCounts() external view {
        for (uint256 i = 0; i < _ids.length; ++i) {
            Run memory r = logs.runOf(_ids[i]);
            vm.assertEq(r.open, _openOf[_ids[i]]);
            vm.assertTrue(r.status == RunStatus.Open || r.stake == 0);
            if (r.size > 0) vm.assertEq(r.logRoot, _logRoot(r.size));
        }
    }

    function _choose(uint256 which) private returns (bool) {
        if (_ids.length == 0) return false;
        id = _ids[which % _ids.length];
        return true;
    }

    function _answerTo(Demand memory d) private pure returns (Chunk memory chunk) {
        chunk.name = "d";
        chunk.form = _document(d.index + 1);
        chunk.leaf = _leaf(_bytes(d.index, d.index + 1), 0);
        chunk.branch = new bytes32[](0);
        chunk.count = 1;
        chunk.entryBranch = new bytes32[](0);
        chunk.logPath = NaiveLog.inclusionPath(_roots(d.size), d.index, 0, d.size);
    }

    function _remove(uint256 i) private {
        --_openOf[_demands[i].id];
        _demands[i] = _demands[_demands.length - 1];
        _demands.pop();
    }
}
