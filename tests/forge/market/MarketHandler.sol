// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Ledger} from "../../../contracts/market/Ledger.sol";
import {Opening, Portion, Profile} from "../../../contracts/market/ProfileTypes.sol";
import {Claim, Dispute, LogProof, Outcome, Status, Task, Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice Drives up to eight tasks at once through moves that are allowed, and throws moves that are not at them.
contract MarketHandler is MarketBase {
    uint256 public deposited;
    uint256 public withdrawn;
    uint256 public intrusions;
    uint256 public moot;
    uint256 public mootProfiles;
    uint256 public voidProfiles;
    uint32 public mostOpen;
    mapping(Status => uint256) public reached;
    mapping(Outcome => uint256) public ended;

    address[6] private _parties;
    bytes32[] private _ids;
    mapping(uint256 number => uint256) private _bonds;
    mapping(uint256 number => bool) private _reported;
    mapping(uint256 number => uint256) private _profileBonds;
    mapping(uint256 number => bool) private _heard;
    uint256 private _atStake;
    uint256 private _now;
    uint256 private _block;

    constructor() {
        setUp();
        _parties = [submitter, solver, verifier, nextVerifier, challenger, treasury];
        (_now, _block) = (block.timestamp, block.number);
    }

    /// @dev Time that a call sets is forgotten after it, so every call begins by setting it again.
    modifier timed() {
        vm.warp(_now);
        vm.roll(_block);
        _;
    }

    /// @notice Opens a task of odd amounts.
    function submit(uint256 amounts) external timed {
        if (_ids.length == 8) return;
        Terms memory s = _terms();
        s.verifierFee = uint128(bound(amounts, 0, 1 ether));
        s.solverStake = s.verifierFee * 2 + uint128(bound(amounts >> 8, 1, 1 ether));
        s.verifierStake = uint128(bound(amounts >> 16, 2, 1 ether));
        s.bond = uint128(bound(amounts >> 24, (uint256(s.verifierStake) + 15) / 16, s.verifierStake / 2));
        uint256 fee = s.verifierFee + bound(amounts >> 32, 1, 1 ether);
        _fund(submitter, fee);
        vm.prank(submitter);
        _ids.push(market.submitTask{value: fee}(s));
        ++reached[Status.Open];
    }

    /// @notice Takes some task one allowed move further.
    function advance(uint256 which, uint256 choice) external timed {
        if (_ids.length == 0) return;
        id = _ids[which % _ids.length];
        Task memory t = market.task(id);
        if (t.status == Status.Open) _advanceOpen(t, choice);
        else if (t.status == Status.Training) _advanceTraining(t, choice);
        else if (t.status == Status.Committed) _advanceCommitted(t);
        else if (t.status == Status.Drawn) _advanceDrawn(t, choice);
        else if (t.status == Status.Verdict) _advanceVerdict(t, choice);
        Task memory next = market.task(id);
        if (next.status != t.status) ++reached[next.status];
        if (next.outcome != t.outcome) ++ended[next.outcome];
    }

    /// @notice Somebody calls something at some time; it may work or not, but no wei may move wrongly.
    function intrude(uint256 which, uint256 who, uint256 what, uint128 value) external timed {
        if (_ids.length == 0) return;
        bytes32 taskId = _ids[which % _ids.length];
        address caller = _parties[who % _parties.length];
        bytes[10] memory calls = [
            abi.encodeCall(market.settle, (taskId)),
            abi.encodeCall(market.claimSolverDefault, (taskId)),
            abi.encodeCall(market.claimVerifierDefault, (taskId)),
            abi.encodeCall(market.cancelTask, (taskId)),
            abi.encodeCall(market.leaveAsVerifier, (taskId)),
            abi.encodeCall(market.draw, (taskId)),
            abi.encodeCall(market.onResolved, (1 + which % 8, what % 2 == 0)),
            abi.encodeCall(market.joinAsVerifier, (taskId)),
            abi.encodeCall(market.voidProfile, (taskId, caller)),
            abi.encodeCall(market.acceptTask, (taskId, value, _thresholds()))
        ];
        Terms memory s = market.terms(taskId);
        value = [0, s.verifierStake, s.solverStake, value][(what / calls.length) % 4];
        _fund(caller, value);
        vm.prank(caller);
        (bool worked,) = address(market).call{value: value}(calls[what % calls.length]);
        if (!worked) deposited -= value;
        else ++intrusions;
    }

    /// @notice The game ends some dispute, whatever has become of its verdict. It does so once for each.
    function resolve(uint256 which, uint256 choice) public timed {
        if (game.disputes() == 0) return;
        uint256 number = 1 + which % game.disputes();
        if (_reported[number]) return;
        if (!_isLive(number) && _bonds[number] > 0) ++moot;
        id = market.dispute(number).taskId;
        _reported[number] = true;
        _release(number);
        game.report(number, choice % 3 > 0);
    }

    /// @notice The game ends some dispute about a profile.
    function hear(uint256 which, uint256 choice) public timed {
        if (profileGame.disputes() == 0) return;
        uint256 number = 1 + which % profileGame.disputes();
        if (_heard[number]) return;
        bytes32 taskId = profiles.dispute(number).taskId;
        bool live = profiles.profile(taskId).number == profiles.dispute(number).profile
            && profiles.profile(taskId).verifier != address(0);
        if (!live) ++mootProfiles;
        else if (choice % 3 == 0) ++voidProfiles;
        _heard[number] = true;
        _atStake -= _profileBonds[number];
        _profileBonds[number] = 0;
        profileGame.report(number, choice % 3 > 0);
    }

    /// @notice Somebody asks for the bond of some dispute: it comes if the verdict is void, and only once.
    function release(uint256 which) external timed {
        if (game.disputes() == 0) return;
        uint256 number = 1 + which % game.disputes();
        if (_isLive(number) || _bonds[number] == 0) {
            vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotMoot.selector, number));
        } else {
            ++moot;
            _release(number);
        }
        market.releaseBond(number);
    }

    /// @notice Somebody fetches what it is owed.
    function withdraw(uint256 who) external timed {
        address party = _parties[who % _parties.length];
        Ledger[2] memory ledgers = [Ledger(market), Ledger(profiles)];
        for (uint256 i = 0; i < 2; ++i) {
            uint256 credit = ledgers[i].credits(party);
            if (credit == 0) continue;
            vm.prank(party);
            ledgers[i].withdraw();
            withdrawn += credit;
        }
    }

    /// @notice Time passes: seldom more than a window.
    function pass(uint256 time) external timed {
        _skip(bound(time, 1, 25 minutes));
    }

    /// @notice What is owed and locked, told from credits, stages, terms and the bonds that were paid.
    function owed() external view returns (uint256 sum) {
        sum = _atStake;
        for (uint256 i = 0; i < _parties.length; ++i) {
            sum += market.credits(_parties[i]) + profiles.credits(_parties[i]);
        }
        for (uint256 i = 0; i < _ids.length; ++i) {
            sum += _locked(_ids[i]);
        }
    }

    function held() external view returns (uint256) {
        return address(market).balance + address(profiles).balance;
    }

    function _advanceOpen(Task memory t, uint256 choice) private {
        Terms memory s = market.terms(id);
        bool contestable = _isContestable();
        if (choice % 16 == 15 && !contestable) {
            vm.prank(submitter);
            market.cancelTask(id);
        } else if (t.verifier == address(0)) {
            _seat(choice);
        } else if (choice % 16 == 14 && !contestable) {
            vm.prank(t.verifier);
            market.leaveAsVerifier(id);
        } else if (profiles.profile(id).verifier == address(0)) {
            _profile(t.verifier);
        } else if (_now <= profiles.profile(id).deadline) {
            if (choice % 3 > 0) _doubt(t.verifier, choice);
            else _skip(10 minutes);
        } else if (profiles.profile(id).open > 0) {
            hear(choice >> 8, choice);
        } else {
            // An intruder may sit in the verifier's seat with the solver's address; the submitter never does.
            address trainer = t.verifier == _parties[1] ? submitter : _parties[1];
            _fund(trainer, s.solverStake);
            vm.prank(trainer);
            market.acceptTask{value: s.solverStake}(id, uint128(bound(choice, 0, t.fee - s.verifierFee)), _thresholds());
        }
    }

    function _isContestable() private view returns (bool) {
        Profile memory p = profiles.profile(id);
        return p.verifier != address(0) && (_now <= p.deadline || p.open > 0);
    }

    /// @dev Somebody challenges the profile, and pays a little too much now and then.
    function _doubt(address seated, uint256 choice) private {
        address doubter = _parties[(choice >> 8) % _parties.length];
        if (doubter == seated) doubter = doubter == challenger ? submitter : challenger;
        (uint256 bond, uint256 excess) = (profiles.bondOf(id), choice % 5);
        _fund(doubter, bond + excess);
        Portion[] memory portions = _portions();
        vm.prank(doubter);
        profiles.challengePortion{value: bond + excess}(id, portions, uint32(choice % 2), Opening(HEADER, PAYLOAD));
        _profileBonds[profileGame.disputes()] = bond;
        _atStake += bond;
    }

    function _advanceTraining(Task memory t, uint256 choice) private {
        solver = t.solver;
        if (_now > t.deadline) market.claimSolverDefault(id);
        else if (choice % 8 == 0) _skip(1 hours);
        else if (choice % 2 == 0 && t.logSize < 5) _progress(t.logSize + 1);
        else _commit();
    }

    function _advanceCommitted(Task memory t) private {
        _block = t.round + 1;
        vm.roll(_block);
        market.draw(id);
    }

    function _advanceDrawn(Task memory t, uint256 choice) private {
        if (t.verifier == address(0)) {
            _seat(choice);
        } else if (_now > t.deadline) {
            market.claimVerifierDefault(id);
        } else if (choice % 4 == 0) {
            _skip(30 minutes);
        } else {
            (Claim[] memory claims, LogProof[] memory proofs) = _claims(choice % 3 > 0);
            vm.prank(t.verifier);
            market.postVerdict(id, claims, proofs);
        }
    }

    function _advanceVerdict(Task memory t, uint256 choice) private {
        if (_now > t.deadline) {
            if (t.open == 0) market.settle(id);
            else resolve(choice >> 8, choice);
        } else if (choice % 3 > 0) {
            Claim memory claim = _claim(0);
            uint256 bond = market.bondOf(id);
            uint256 excess = choice % 5;
            address doubter = _parties[(choice >> 8) % _parties.length];
            if (doubter == t.verifier) doubter = doubter == challenger ? submitter : challenger;
            _fund(doubter, bond + excess);
            vm.prank(doubter);
            market.challenge{value: bond + excess}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
            _bonds[game.disputes()] = bond;
            _atStake += bond;
            if (t.open + 1 > mostOpen) mostOpen = t.open + 1;
        } else {
            _skip(20 minutes);
        }
    }

    function _release(uint256 number) private {
        _atStake -= _bonds[number];
        _bonds[number] = 0;
    }

    function _isLive(uint256 number) private view returns (bool) {
        Dispute memory d = market.dispute(number);
        Task memory t = market.task(d.taskId);
        return t.status == Status.Verdict && t.verdicts == d.verdict;
    }

    function _seat(uint256 choice) private {
        address who = choice % 2 == 0 ? verifier : nextVerifier;
        uint256 stake = market.terms(id).verifierStake;
        // An intruder may have become the solver of the task with this very address.
        if (who == market.task(id).solver) return;
        _fund(who, stake);
        vm.prank(who);
        market.joinAsVerifier{value: stake}(id);
    }

    function _fund(address who, uint256 amount) private {
        vm.deal(who, amount);
        deposited += amount;
    }

    function _skip(uint256 time) private {
        _now += time;
        _block += time / 12 + 1;
        vm.warp(_now);
        vm.roll(_block);
    }
}
