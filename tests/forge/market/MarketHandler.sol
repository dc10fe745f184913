// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Contested, Dispute} from "../../../contracts/market/IChallenges.sol";
import {Split} from "../../../contracts/market/Split.sol";
import {Charge, Portion, Profile} from "../../../contracts/market/ProfileTypes.sol";
import {Claim, Ending, LogProof, Outcome, Status, Task, Terms} from "../../../contracts/market/TaskTypes.sol";
import {CounterclaimBase} from "./CounterclaimBase.sol";
import {DataDemand, Disclosure, ForcedErrors, Seating, Verdict} from "./MarketBase.sol";

/// @notice Drives up to five tasks at once through moves that are allowed, and throws moves that are not at them.
abstract contract MarketHandler is CounterclaimBase {
    uint256 public intrusions;
    uint256 public moot;
    uint256 public leaks;
    uint256 public undisclosed;
    uint256 public forcedErrors;
    uint256 public released;
    uint256 public answered;
    uint256 public withheld;
    uint256 public mootDemands;
    uint256 public unserved;
    uint256 public notServed;
    uint32 public mostOpen;
    mapping(Status => mapping(Status => uint256)) public moves;
    mapping(Outcome => uint256) public ended;

    address[8] internal _parties;
    bytes32[] internal _ids;
    DataDemand[] internal _asked;
    mapping(bytes32 taskId => mapping(uint32 seating => bool)) private _accepting;
    mapping(uint256 number => bool) internal _reported;
    mapping(uint256 number => bool) internal _heard;
    uint256 private _now;

    constructor() {
        setUp();
        _parties = [submitter, solver, verifier, nextVerifier, challenger, watcher, donor, treasury];
        _now = block.timestamp;
    }

    /// @dev Time that a call sets is forgotten after it, so every call begins by setting it again. Whatever happens is
    /// noted.
    modifier timed() {
        vm.warp(_now);
        Status[] memory before = new Status[](_ids.length);
        for (uint256 i = 0; i < before.length; ++i) {
            before[i] = registry.task(_ids[i]).status;
        }
        _;
        _now = vm.getBlockTimestamp();
        for (uint256 i = 0; i < before.length; ++i) {
            Task memory t = registry.task(_ids[i]);
            if (t.status == before[i]) continue;
            ++moves[before[i]][t.status];
            if (t.status == Status.Closed) ++ended[t.outcome];
        }
    }

    function ids() external view returns (bytes32[] memory) {
        return _ids;
    }

    function parties() external view returns (address[8] memory) {
        return _parties;
    }

    /// @notice Opens a task of odd amounts.
    function submit(uint256 amounts) external timed {
        if (_ids.length == 5) return;
        Terms memory s = _terms();
        s.verifierFee = uint128(bound(amounts, 0, 1 ether));
        s.verifierStake = uint128(bound(amounts >> 16, 8, 1 ether));
        s.bond = uint128(bound(amounts >> 24, (uint256(s.verifierStake) + 15) / 16, s.verifierStake / 2));
        s.jackpot = uint128(bound(amounts >> 32, 4, s.verifierStake / 2));
        s.unitPrice = uint128(bound(amounts >> 40, 1, s.unitPrice));
        uint128 least = s.verifierFee * 2 + uint128(jackpot.tax(s.jackpot)) * 3;
        // Shares of two words end at the verifier's stake.
        least = least > s.verifierStake * 2 ? least : s.verifierStake * 2;
        s.solverStake = least + uint128(bound(amounts >> 8, 1, 1 ether));
        if (amounts >> 56 & 1 == 0) s = _exact(s);
        vm.prank(submitter);
        _ids.push(registry.submit(s));
    }

    /// @notice Takes some task one allowed move further.
    function advance(uint256 which, uint256 choice) external timed {
        if (_ids.length == 0) return;
        id = _ids[which % _ids.length];
        Task memory t = registry.task(id);
        if (t.status == Status.Profiling) _advanceProfiling(t, choice);
        else if (t.status == Status.Bidding) _advanceBidding(choice);
        else if (t.status == Status.Training) _advanceTraining(t, choice);
        else if (t.status == Status.Committed) _advanceCommitted(choice);
        else if (t.status == Status.Verifying) _advanceVerifying(t, choice);
        else if (t.status == Status.Watched) _advanceWatched(choice);
        else if (t.status == Status.Contested) _advanceContested(t, choice);
    }

    /// @notice Somebody calls something at some time; it may work or not, but nothing may move wrongly.
    function intrude(uint256 which, uint256 who, uint256 what) external timed {
        if (_ids.length == 0) return;
        bytes32 taskId = _ids[which % _ids.length];
        bytes[14] memory calls = [
            abi.encodeCall(settlement.settle, (taskId)),
            abi.encodeCall(settlement.claimSolverDefault, (taskId)),
            abi.encodeCall(settlement.claimSeatDefault, (taskId)),
            abi.encodeCall(settlement.unserved, (taskId)),
            abi.encodeCall(settlement.claimUnserved, (taskId)),
            abi.encodeCall(registry.cancel, (taskId)),
            abi.encodeCall(registry.award, (taskId)),
            abi.encodeCall(seats.openClaims, (taskId)),
            abi.encodeCall(seats.decide, (taskId)),
            abi.encodeCall(verdicts.claimUndisclosed, (taskId)),
            abi.encodeCall(verdicts.openWatch, (taskId)),
            abi.encodeCall(profiles.conclude, (taskId)),
            abi.encodeCall(challenges.onResolved, (1 + which % 8, what % 2 == 0)),
            abi.encodeCall(jackpot.sweep, (taskId))
        ];
        vm.prank(_parties[who % _parties.length]);
        what %= 14;
        address desk = what < 5 ? address(settlement) : what < 7 ? address(registry) : address(seats);
        if (what > 8) desk = what < 11 ? address(verdicts) : address(profiles);
        if (what > 11) desk = what == 12 ? address(challenges) : address(jackpot);
        (bool worked,) = desk.call(calls[what]);
        if (worked) ++intrusions;
    }

    /// @notice Somebody asks for some leaf of some task, if it may.
    function ask(uint256 which, uint256 who, uint256 what) external timed {
        if (_ids.length == 0) return;
        id = _ids[which % _ids.length];
        _ask(_parties[who % 7], what);
    }

    /// @notice Some demand ends, if it can.
    function show(uint256 which, uint256 choice) external timed {
        if (_asked.length > 0) _endDemand(which % _asked.length, choice);
    }

    /// @notice The game ends some dispute, whatever has become of its verdict. It does so once for each.
    function resolve(uint256 which, uint256 choice) external timed {
        _resolve(which, choice);
    }

    /// @notice The game ends some dispute about a profile.
    function hear(uint256 which, uint256 choice) external timed {
        _hear(which, choice);
    }

    /// @notice Somebody settles some dispute: it works if the game has ended it or it is moot, and only once.
    function settle(uint256 which) external timed {
        if (game.disputes() > 0) _settleDispute(1 + which % game.disputes());
    }

    function _settleDispute(uint256 number) private {
        Dispute memory d = challenges.dispute(number);
        bool isMoot = !isLive(number) || (challenges.contested(d.taskId).fell && d.ending != Ending.Fell);
        bool due = d.ending != Ending.Settled && (d.ending != Ending.None || isMoot);
        uint256 gained = isMoot || d.ending == Ending.Fell ? d.bond : 0;
        if (!isMoot && d.ending == Ending.Fell) gained += seats.seating(d.taskId).stake / 2;
        uint256 before = vault.free(d.challenger);
        (bool worked,) = address(challenges).call(abi.encodeCall(challenges.settleDispute, (number)));
        vm.assertTrue(worked == due);
        vm.assertEq(vault.free(d.challenger) - before, due ? gained : 0);
        if (worked && isMoot) ++released;
    }

    /// @notice Somebody takes what is free, and brings it back: nothing else is in reach.
    function withdraw(uint256 who, uint256 amount) external timed {
        address party = _parties[who % 7];
        amount = bound(amount, 1, vault.free(party));
        vm.prank(party);
        vault.withdraw(party, amount);
        vm.prank(party);
        vault.deposit{value: amount}(party, amount);
    }

    /// @notice Time passes: seldom more than a window.
    function pass(uint256 time) external timed {
        _pass(bound(time, 1, 25 minutes));
    }

    /// @notice Whether the verdict that a dispute is about stands.
    function isLive(uint256 number) public view returns (bool) {
        Dispute memory d = challenges.dispute(number);
        Task memory t = registry.task(d.taskId);
        return t.status == Status.Contested && t.seating == d.seating;
    }

    /// @notice Where the money of tasks lies.
    function houses() external view returns (address, address, address, address, address) {
        return (address(vault), address(settlement), address(seats), address(challenges), address(demands));
    }

    function openOf(bytes32 taskId) external view returns (uint32) {
        return registry.task(taskId).status == Status.Contested ? challenges.contested(taskId).open : 0;
    }

    /// @notice What the desk of demands should hold for a task, and how many of them its present log waits for.
    function expectedDemands(bytes32 taskId) external view returns (uint256 bonds, uint32 open, uint32 counted) {
        for (uint256 i = 0; i < _asked.length; ++i) {
            if (_asked[i].taskId != taskId || !demands.isOpen(_key(_asked[i]))) continue;
            bonds += _asked[i].bond;
            if (_asked[i].began == registry.task(taskId).began) ++open;
        }
        return (bonds, open, demands.open(taskId));
    }

    function stateOf(bytes32 taskId) external view returns (Task memory, Seating memory, bool posted) {
        return (registry.task(taskId), seats.seating(taskId), profiles.profile(taskId).verifier != address(0));
    }

    function fund() external view returns (uint256) {
        return vault.pot(address(jackpot), jackpot.FUND());
    }

    function reserved() external view returns (uint256) {
        return jackpot.reserved();
    }

    /// @notice What is reserved for all tasks, told one by one.
    function reserves() external view returns (uint256 sum) {
        for (uint256 i = 0; i < _ids.length; ++i) {
            (uint128 amount,) = jackpot.reserves(_ids[i]);
            sum += amount;
        }
    }

    /// @dev Under whose names the vault locks money of a task.
    function _lockingDesks() internal view returns (address[7] memory) {
        return [
            address(settlement),
            address(seats),
            address(challenges),
            address(profiles),
            address(demands),
            address(objections),
            address(counterclaims)
        ];
    }

    /// @notice All balances of the vault, by desk, key and account.
    function owed() external view returns (uint256 sum) {
        address[7] memory desks = _lockingDesks();
        sum = vault.pot(address(jackpot), jackpot.FUND());
        for (uint256 p = 0; p < _parties.length; ++p) {
            sum += vault.free(_parties[p]) + vault.locked(address(sortition), sortition.BOND(), _parties[p]);
            for (uint256 i = 0; i < _ids.length; ++i) {
                for (uint256 k = 0; k < desks.length; ++k) {
                    sum += vault.locked(desks[k], _ids[i], _parties[p]);
                }
                bytes32 roundId = auction.lastRound(address(registry), _ids[i]);
                sum += vault.locked(address(auction), roundId, _parties[p]);
            }
        }
    }

    function locked(address desk, bytes32 key) public view returns (uint256 sum) {
        for (uint256 p = 0; p < _parties.length; ++p) {
            sum += vault.locked(desk, key, _parties[p]);
        }
    }

    /// @notice What desks should hold for a task, told from its state, its terms and its disputes.
    function expected(bytes32 taskId)
        external
        view
        returns (uint256 atSettlement, uint256 atSeats, uint256 bonds, uint32 open)
    {
        Task memory t = registry.task(taskId);
        Terms memory s = registry.terms(taskId);
        if (t.status != Status.Closed) {
            atSettlement = _escrow(taskId, s) + (t.solver == address(0) ? 0 : s.solverStake - _rewarded(taskId));
        }
        for (uint256 i = 0; i < 2 && settlement.unservedBy(taskId)[i] != address(0); ++i) {
            atSettlement += Split.unservedBond(t.price, s.solverStake, s.verifierStake);
        }
        Seating memory seat = seats.seating(taskId);
        if (seat.best != address(0) && !seat.left) atSeats = s.verifierStake;
        for (uint256 number = 1; number <= game.disputes(); ++number) {
            Dispute memory d = challenges.dispute(number);
            if (d.taskId != taskId || d.ending == Ending.Settled) continue;
            bonds += d.bond;
            if (isLive(number)) ++open;
        }
    }

    /// @dev What of the stake of the present solver an objector has got.
    function _rewarded(bytes32 taskId) internal view virtual returns (uint256);

    /// @dev Somebody ends what is open about the log of `id`, one of them at a time.
    function _endObjections(uint256 choice) internal virtual;

    /// @dev The true claims of a task, which are equal roots where it is exact.
    function _claims(bool accepts) internal view override returns (Claim[] memory claims, LogProof[] memory logProofs) {
        (claims, logProofs) = super._claims(accepts);
        if (registry.terms(id).margin > 0) return (claims, logProofs);
        for (uint256 i = 0; i < claims.length; ++i) {
            (claims[i].replay, claims[i].distances) = (claims[i].end, [uint256(0), 0, 0]);
        }
        if (!accepts) claims[claims.length - 1].replay = "another";
    }

    function _escrow(bytes32 taskId, Terms memory s) private view returns (uint256) {
        return settlement.escrowOf(s) - (profiles.profile(taskId).concluded ? s.verifierFee : 0);
    }

    /// @dev From wherever the seat is to a decision, by a claim or by none.
    function _sit(uint256 choice, bool verifies) private {
        Seating memory s = seats.seating(id);
        if (s.until == 0) {
            _give(s.round, keccak256(abi.encode(choice)));
            seats.openClaims(id);
            s = seats.seating(id);
        }
        address who = choice % 2 == 0 ? verifier : nextVerifier;
        if (vm.getBlockTimestamp() <= s.until && choice % 7 > 0) {
            bytes32 commitment = verifies ? ForcedErrors.commitment(who, id, secret) : bytes32(0);
            vm.prank(who);
            (bool worked,) = address(seats).call(abi.encodeCall(seats.claim, (id, 0, commitment)));
            if (!worked || choice % 3 == 0) return;
        }
        if (vm.getBlockTimestamp() <= s.until) vm.warp(s.until + 1);
        seats.decide(id);
    }

    function _advanceProfiling(Task memory t, uint256 choice) private {
        Profile memory p = profiles.profile(id);
        if (t.holder == address(0)) {
            if (choice % 16 == 15) _cancel();
            else _sit(choice, false);
        } else if (p.verifier == address(0)) {
            if (vm.getBlockTimestamp() > t.deadline) settlement.claimSeatDefault(id);
            else if (choice % 8 == 7) vm.warp(t.deadline + 1);
            else _profile(t.holder);
        } else if (vm.getBlockTimestamp() <= p.deadline) {
            if (choice % 3 == 0 && !p.fell) _doubt(t.holder, choice);
            else vm.warp(p.deadline + 1);
        } else if (p.open > 0) {
            _hear(choice >> 8, choice);
        } else {
            profiles.conclude(id);
        }
    }

    function _cancel() private {
        vm.prank(submitter);
        registry.cancel(id);
    }

    function _doubt(address seated, uint256 choice) private {
        address doubter = _doubter(seated, choice);
        Portion[] memory portions = _portions();
        _announceProfileCharge(doubter, Charge.Portion, uint32(choice % 2), 0);
        vm.prank(doubter);
        profiles.challengePortion(id, portions, uint32(choice % 2), _opening());
    }

    function _doubter(address seated, uint256 choice) private view returns (address doubter) {
        doubter = _parties[(choice >> 8) % 7];
        if (doubter == seated) doubter = challenger;
    }

    function _advanceBidding(uint256 choice) private {
        bytes32 roundId = auction.lastRound(address(registry), id);
        if (auction.round(roundId).closed || vm.getBlockTimestamp() > auction.round(roundId).bidUntil) {
            registry.award(id);
        } else if (choice % 16 == 15) {
            _cancel();
        } else {
            _price = 0;
            if (choice % 8 > 0) return _award();
            bytes32 commitment = keccak256(abi.encode(roundId, solver, _price, _promise, salt));
            vm.prank(solver);
            auction.bid(roundId, commitment);
            vm.warp(auction.round(roundId).bidUntil + 1);
            auction.reveal(roundId, solver, _price, _promise, salt);
            _pass(2 * _terms().bidWindow);
            auction.expire(roundId);
        }
    }

    function _advanceTraining(Task memory t, uint256 choice) private {
        uint64 size = proofs.proof(id).began == t.began ? proofs.proof(id).size : 0;
        if (vm.getBlockTimestamp() > t.deadline) settlement.claimSolverDefault(id);
        else if (choice % 8 == 0) vm.warp(t.deadline + 1);
        else if (size == 0 && choice % 2 == 0 && proofs.proof(id).size == 0) _progress(3);
        else _commitFrom(size);
    }

    /// @dev The log of a solver that is gone is not extended.
    function _commitFrom(uint64 size) private {
        bytes32[] memory none = new bytes32[](0);
        (bytes32 root, bytes32[] memory path, bytes32[] memory first) =
            (_root(5), size == 0 ? none : _consistency(5), _inclusion(0));
        vm.prank(solver);
        proofs.commit(id, 5, root, path, "proof", first);
    }

    function _advanceCommitted(uint256 choice) private {
        if (settlement.unservedBy(id)[1] == address(0)) return _sit(choice, true);
        if (objections.objected(id).open > 0) return _endObjections(choice);
        ++notServed;
        settlement.claimUnserved(id);
    }

    function _sayUnserved(address holder) private {
        ++unserved;
        vm.prank(holder);
        settlement.unserved(id);
        if (registry.task(id).status == Status.Bidding) ++notServed;
    }

    function _advanceVerifying(Task memory t, uint256 choice) private {
        if (vm.getBlockTimestamp() > t.deadline) {
            if (demands.open(id) > 0) return _endFirst(choice);
            if (choice % 4 == 3 && seats.dutySeed(id) == 0) return settlement.extend(id);
            _give(proofs.proof(id).round, keccak256(abi.encode("draw", choice)));
            _give(seats.seating(id).dutyRound, keccak256(abi.encode("duty", choice)));
            vm.prank(challenger);
            return settlement.claimSeatDefault(id);
        }
        if (choice % 32 == 9) return _ask(t.holder, choice >> 8);
        if (choice % 8 == 0) return vm.warp(t.deadline + 1);
        if (choice % 16 == 1) return _leak();
        _give(proofs.proof(id).round, keccak256(abi.encode("draw", choice)));
        _give(seats.seating(id).dutyRound, keccak256(abi.encode("duty", choice)));
        if (choice % 8 == 2) return vm.warp(t.deadline + 1);
        if (choice % 8 == 3 && settlement.unservedBy(id)[0] != t.holder) return _sayUnserved(t.holder);
        (bool forced,,) = _duty();
        if (forced) ++forcedErrors;
        _accepting[id][t.seating] = choice % 3 > 0;
        _verdict(t.holder, choice % 3 > 0);
    }

    function _leak() private {
        ++leaks;
        _reportLeak(challenger);
    }

    function _advanceWatched(uint256 choice) private {
        Verdict memory v = verdicts.verdict(id);
        if (v.watchUntil == 0) {
            _give(v.watchRound, keccak256(abi.encode("watch", choice)));
            return verdicts.openWatch(id);
        }
        if (vm.getBlockTimestamp() <= v.watchUntil) {
            if (choice % 16 == 0 && !v.leaked) return _leak();
            return vm.warp(v.watchUntil + 1);
        }
        uint64 until = v.watchUntil + _terms().disclosureWindow;
        if (v.leaked || vm.getBlockTimestamp() > until) {
            ++undisclosed;
            return verdicts.claimUndisclosed(id);
        }
        if (choice % 8 == 0) return vm.warp(until + 1);
        Disclosure memory d = _disclosure(_accepting[id][v.seating]);
        verdicts.disclose(id, d);
    }

    function _advanceContested(Task memory t, uint256 choice) private {
        Contested memory c = challenges.contested(id);
        if (vm.getBlockTimestamp() > t.deadline) {
            if (c.open > 0) _resolve(choice >> 8, choice);
            else if (objections.objected(id).open > 0) _endObjections(choice);
            else if (demands.open(id) > 0 && _stands(t)) _endFirst(choice);
            else settlement.settle(id);
        } else if (choice % 3 > 0 && !c.fell) {
            _challenge(_doubter(t.holder, choice));
            if (c.open + 1 > mostOpen) mostOpen = c.open + 1;
        } else {
            vm.warp(t.deadline + 1);
        }
    }

    function _ask(address who, uint256 what) private {
        Task memory t = registry.task(id);
        bool may = t.status >= Status.Committed && t.status <= Status.Contested
            && (t.deadline == 0 || vm.getBlockTimestamp() <= t.deadline);
        DataDemand memory d =
            DataDemand(id, t.began, uint64(what % 5), uint32(what >> 8), uint32(what >> 16), who, 0, demands.bondOf());
        d.deadline = uint64(vm.getBlockTimestamp()) + WINDOW;
        if (demands.isOpen(_key(d))) return;
        vm.prank(who);
        (bool worked,) =
            address(demands).call(abi.encodeCall(demands.demand, (id, d.entry, d.position, d.leaf, d.bond)));
        vm.assertTrue(worked == may);
        if (worked) _asked.push(d);
    }

    /// @dev The solver shows what is asked for, or doesn't.
    function _endDemand(uint256 i, uint256 choice) private {
        DataDemand memory d = _asked[i];
        if (!demands.isOpen(_key(d))) return;
        Task memory t = registry.task(d.taskId);
        bytes32 current = id;
        id = d.taskId;
        if (t.began != d.began || t.status == Status.Closed) {
            ++mootDemands;
            demands.expire(d);
        } else if (vm.getBlockTimestamp() > d.deadline) {
            (bool worked,) = address(demands).call(abi.encodeCall(demands.expire, (d)));
            bool decided = t.status < Status.Watched || (t.status == Status.Contested && _stands(t));
            if (objections.objected(id).open > 0) decided = false;
            vm.assertTrue(worked == decided);
            if (worked) ++withheld;
        } else if (choice % 4 == 0) {
            vm.warp(d.deadline + 1);
        } else {
            ++answered;
            _answer(solver, d);
        }
        id = current;
    }

    function _stands(Task memory t) private view returns (bool) {
        return vm.getBlockTimestamp() > t.deadline && challenges.contested(id).open == 0
            && verdicts.verdict(id).rejecting == 0 && !objections.objected(id).fell;
    }

    /// @dev The first demand that the task waits for.
    function _endFirst(uint256 choice) private {
        for (uint256 i = 0; i < _asked.length; ++i) {
            bool waits = _asked[i].taskId == id && _asked[i].began == registry.task(id).began;
            if (waits && demands.isOpen(_key(_asked[i]))) return _endDemand(i, choice);
        }
    }

    function _resolve(uint256 which, uint256 choice) private {
        if (game.disputes() == 0) return;
        uint256 number = 1 + which % game.disputes();
        if (!_reported[number]) {
            if (!isLive(number)) ++moot;
            _reported[number] = true;
            game.report(number, choice % 3 > 0);
            // Somebody else settles it some time.
            if (choice % 4 == 0) return;
        }
        _settleDispute(number);
    }

    function _hear(uint256 which, uint256 choice) private {
        if (profileGame.disputes() == 0) return;
        uint256 number = 1 + which % profileGame.disputes();
        if (!_heard[number]) {
            _heard[number] = true;
            profileGame.report(number, choice % 3 > 0);
            if (choice % 4 == 0) return;
        }
        bool due = profiles.dispute(number).ending != Ending.Settled;
        (bool worked,) = address(profiles).call(abi.encodeCall(profiles.settleDispute, (number)));
        vm.assertTrue(worked == due);
    }
}
