// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IJackpot} from "../../../contracts/incentives/IJackpot.sol";
import {Jackpot} from "../../../contracts/incentives/Jackpot.sol";
import {Sortition} from "../../../contracts/incentives/Sortition.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {LotteryBase} from "./LotteryBase.sol";
import {LotteryReplay} from "./LotteryReplay.sol";

/// @notice Four verifiers and three tasks at once: enrols, resigns, watches, catches, lets time go by, and tries what
/// isn't allowed. It writes down, in the simplest way, what the contracts have to say.
contract LotteryHandler is LotteryBase {
    struct Change {
        uint64 at;
        uint256 tickets;
    }

    struct Transition {
        bytes32 id;
        uint8 stage; // 0 to be opened, 1 watched, 2 not watched any more, 3 closed
        uint32 seatings;
    }

    uint256 public constant ACTORS = 4;
    uint256 public constant WALKS = 3;
    address[ACTORS] public actors;
    LotteryReplay public replay;
    bytes32[] public ids;

    mapping(address who => uint256) public bonds;
    mapping(address who => uint256) public left;
    mapping(address who => uint256) public won;
    uint256 public given;
    uint256 public wonByAll;
    uint256 public mostForATicket;
    uint256[7] public seen; // left, caught, unpaid for want of shares, swept, seated again, refused, released

    mapping(address who => Change[]) private _changes;
    mapping(bytes32 ticket => uint256) private _catches;
    mapping(bytes32 taskId => mapping(uint32 seating => bytes32)) private _secrets;
    mapping(bytes32 taskId => mapping(uint32 seating => bool)) private _isForced;
    Transition[WALKS] private _walks;
    uint256 private _time;

    constructor() {
        setUp();
        actors = [alice, bob, account("carol"), account("dave")];
        replay = new LotteryReplay(address(jackpot));
        _time = block.timestamp;
    }

    /// @dev Time that a call sets is forgotten after it, so every call begins by setting it again.
    modifier timed() {
        vm.warp(_time);
        vm.recordLogs();
        _;
        _time = vm.getBlockTimestamp();
        replay.replay(vm.getRecordedLogs());
    }

    function contracts() external view returns (StakeVault, Sortition, Jackpot) {
        return (vault, sortition, jackpot);
    }

    function time() external view returns (uint64) {
        return uint64(_time);
    }

    /// @notice Tickets that an account had at the end of a second, as was written down.
    function at(address who, uint64 second) public view returns (uint256 tickets) {
        Change[] storage changes = _changes[who];
        for (uint256 i = 0; i < changes.length && changes[i].at <= second; ++i) {
            tickets = changes[i].tickets;
        }
    }

    function seatingsOf(bytes32 taskId) external view returns (uint32 number) {
        (,, number,,) = desk.paths(taskId);
    }

    function idCount() external view returns (uint256) {
        return ids.length;
    }

    function enrol(uint256 which, uint256 count) external timed {
        address who = actors[which % ACTORS];
        count = bound(count, 1, 5);
        _enrol(who, uint32(count));
        bonds[who] += count * UNIT;
        _note(who, at(who, _now()) + count);
    }

    function resign(uint256 which, uint256 count) external timed {
        address who = actors[which % ACTORS];
        uint256 mine = at(who, _now());
        if (mine == 0) return;
        count = bound(count, 1, mine);
        _finish(who);
        _resign(who, uint32(count));
        _note(who, mine - count);
    }

    function finish(uint256 which) external timed {
        _finish(actors[which % ACTORS]);
    }

    function donate(uint256 amount) external timed {
        _give(bound(amount, 1, 20 ether));
    }

    function pass(uint256 duration) external timed {
        _pass(bound(duration, 1, 12 days));
    }

    /// @notice Takes some task one step further.
    function advance(uint256 which, uint256 choice) external timed {
        Transition storage walk = _walks[which % WALKS];
        if (walk.stage == 0) _open(walk, choice);
        else if (walk.stage == 1) _commit(walk, choice);
        else if (walk.stage == 2) _close(walk, choice);
        else _collect(walk, choice);
    }

    /// @notice Somebody tries what nobody may; all of it is refused.
    function intrude(uint256 which, uint256 what, uint256 amount) external timed {
        address who = actors[which % ACTORS];
        bytes32 id = ids.length == 0 ? bytes32("none") : ids[what % ids.length];
        address[] memory names = new address[](1);
        names[0] = who;
        amount = bound(amount, SHARES, 10 ether);
        bytes[7] memory calls = [
            abi.encodeCall(sortition.resign, (uint32(at(who, _now()) + 1))),
            abi.encodeCall(jackpot.wire, (desk, names)),
            abi.encodeCall(jackpot.reserve, (id, uint128(amount))),
            abi.encodeCall(jackpot.release, (id)),
            abi.encodeCall(jackpot.watch, (id, type(uint32).max, "found")),
            abi.encodeCall(jackpot.claim, (id, 1, who, 0, 0, "another salt", abi.encode(1))),
            abi.encodeCall(jackpot.sweep, ("none"))
        ];
        what %= calls.length;
        vm.prank(who);
        (bool ok,) = (what < 1 ? address(sortition) : address(jackpot)).call(calls[what]);
        vm.assertFalse(ok);
        ++seen[5];
    }

    function _note(address who, uint256 tickets) private {
        _changes[who].push(Change(_now(), tickets));
    }

    /// @dev What has been leaving long enough is free.
    function _finish(address who) private {
        (uint256 amount, uint64 until) = vault.leaving(address(sortition), "bond", who);
        if (amount == 0 || _now() < until) return;
        vault.finishExit(address(sortition), "bond", who);
        bonds[who] -= amount;
        left[who] += amount;
        ++seen[0];
    }

    function _give(uint256 amount) private {
        _donate(mallory, amount);
        given += amount;
    }

    function _open(Transition storage walk, uint256 choice) private {
        uint256 amount = bound(choice, SHARES, 10 ether);
        if (jackpot.available() < amount) _give(amount);
        walk.id = keccak256(abi.encode("task", ids.length));
        ids.push(walk.id);
        desk.open(walk.id, submitter, solver);
        _seat(walk, uint128(amount), choice % 4 > 0);
        if (choice % 16 < 12) _commit(walk, choice);
    }

    function _seat(Transition storage walk, uint128 amount, bool forced) private {
        bytes32 secret = _toWatchAgain(walk.id, amount, forced);
        ++walk.seatings;
        (_secrets[walk.id][walk.seatings], _isForced[walk.id][walk.seatings]) = (secret, forced);
        walk.stage = 1;
    }

    /// @dev All drawn tickets commit, three of four to the truth.
    function _commit(Transition storage walk, uint256 choice) private {
        walk.stage = 2;
        (uint32 number, uint64 since,, uint64 until) = desk.seating(walk.id);
        if (_now() > until) return;
        uint64 when = until - uint64(choice % COMMIT_WINDOW);
        if (when > _now()) vm.warp(when);
        for (uint256 a = 0; a < ACTORS; ++a) {
            _commitOf(walk.id, number, since, actors[a], choice >> (16 + 8 * a));
        }
    }

    function _commitOf(bytes32 id, uint32 number, uint64 since, address who, uint256 choice) private {
        uint32[] memory drawn = _drawn(who, id);
        bytes32 found = _found(who, id, number, _index(id, number, _secrets[id][number]));
        for (uint256 i = 0; i < drawn.length; ++i) {
            // Enrolled before the round was fixed, and not resigned since.
            vm.assertLt(drawn[i], at(who, since - 1));
            vm.assertLt(drawn[i], at(who, _now()));
            _watch(who, id, drawn[i], "found nothing");
            if ((choice >> i) % 4 > 0) _watch(who, id, drawn[i], found);
        }
    }

    function _close(Transition storage walk, uint256 choice) private {
        if (choice % 2 == 0 && walk.seatings < 4) {
            desk.unseat(walk.id);
            _seat(walk, 0, choice % 8 > 0);
            ++seen[4];
            if (choice % 16 < 12) _commit(walk, choice);
            return;
        }
        (,,, uint64 until) = desk.seating(walk.id);
        if (_now() <= until) vm.warp(until + 1);
        bytes32 secret = _secrets[walk.id][walk.seatings];
        desk.disclose(walk.id, secret, SALT, _truth(_index(walk.id, walk.seatings, secret)));
        desk.close(walk.id);
        walk.stage = 3;
        (uint128 amount,) = jackpot.reserves(walk.id);
        if (amount == 0) (walk.stage, walk.seatings, seen[6]) = (0, 0, seen[6] + 1);
    }

    /// @dev Brings the catches, or ends the task.
    function _collect(Transition storage walk, uint256 choice) private {
        uint64 until = desk.closedAt(walk.id) + CATCH_WINDOW;
        if (_now() > until || choice % 8 == 0) {
            if (_now() <= until) vm.warp(until + 1);
            jackpot.sweep(walk.id);
            (walk.stage, walk.seatings, seen[3]) = (0, 0, seen[3] + 1);
            return;
        }
        for (uint32 number = 1; number <= walk.seatings; ++number) {
            if (!_isForced[walk.id][number]) continue;
            for (uint256 i = 0; i < ACTORS * 40; ++i) {
                _bringClaim(walk, number, actors[(choice % ACTORS + i) % ACTORS], uint32(i / ACTORS));
            }
        }
    }

    function _bringClaim(Transition storage walk, uint32 number, address who, uint32 ticket) private {
        uint32 index = _index(walk.id, number, _secrets[walk.id][number]);
        if (jackpot.commitments(walk.id, number, who, ticket) != _found(who, walk.id, number, index)) return;
        (uint128 amount, uint32 catches) = jackpot.reserves(walk.id);
        if (catches == SHARES) {
            ++seen[2];
            vm.expectRevert(abi.encodeWithSelector(IJackpot.AllPaid.selector, walk.id));
            jackpot.claim(walk.id, number, who, ticket, index, SALT, abi.encode(walk.seatings));
            return;
        }
        jackpot.claim(walk.id, number, who, ticket, index, SALT, abi.encode(walk.seatings));
        (won[who], wonByAll) = (won[who] + amount / SHARES, wonByAll + amount / SHARES);
        uint256 times = ++_catches[keccak256(abi.encode(walk.id, number, who, ticket))];
        if (times > mostForATicket) mostForATicket = times;
        ++seen[1];
    }
}
