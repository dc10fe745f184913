// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Contest, Counterclaim} from "../../../contracts/market/ICounterclaims.sol";
import {Objection, ObjectionCount} from "../../../contracts/market/IObjections.sol";
import {Claim, Ending, LogProof, MarketHandler, Status, Task, Terms} from "./MarketHandler.sol";
import {ClaimCharge, Reordered, Rerun} from "./CounterclaimBase.sol";

/// @notice The same market, in which parties object to segments, answer for that, and contest what others say.
contract ObjectionHandler is MarketHandler {
    uint256 public objected;
    uint256 public counterclaimed;
    uint256 public contested;
    uint256 public fallen;
    uint256 public mootObjections;

    mapping(bytes32 taskId => mapping(uint64 began => uint256)) private _paid;
    mapping(uint256 number => bool) internal _decided;
    mapping(uint256 dispute => bool) internal _ruled;

    /// @notice Somebody objects to some segment of some task, if it may.
    function object(uint256 which, uint256 who, uint256 what) external timed {
        if (_ids.length == 0) return;
        id = _ids[which % _ids.length];
        address party = _parties[who % 7];
        Task memory t = registry.task(id);
        uint32 segment = uint32(what % 4);
        bool may = t.status >= Status.Committed && t.status <= Status.Contested && party != t.solver
            && !objections.objected(id).fell && settlement.unservedBy(id)[1] == address(0);
        if (t.status == Status.Contested) may = may && vm.getBlockTimestamp() <= t.deadline;
        else may = may && !_isDrawn(segment);
        bool isExact = registry.terms(id).margin == 0;
        bool worked = isExact ? _object(party, segment) : _counter(party, segment);
        vm.assertTrue(worked == may);
        // Seldom is one alone.
        if (!worked) return;
        vm.assertTrue(isExact ? _object(watcher, segment) : _counter(watcher, segment));
    }

    /// @notice Somebody contests some counterclaim, if it may.
    function contest(uint256 which, uint256 who) external timed {
        if (counterclaims.last() == 0) return;
        uint256 number = 1 + which % counterclaims.last();
        address party = _parties[who % 7];
        Counterclaim memory c = counterclaims.counterclaimed(number);
        bool may = !c.fell && !c.concluded && vm.getBlockTimestamp() <= c.until && party != c.objector;
        id = c.taskId;
        ClaimCharge memory charge = _charge(_segmentOf(c));
        bool worked = _dispute(party, number, charge);
        vm.assertTrue(worked == may);
        if (worked && party != solver && c.objector != solver) vm.assertTrue(_dispute(solver, number, charge));
    }

    /// @notice The game ends some objection, or somebody settles it.
    function decide(uint256 which, uint256 choice) external timed {
        uint256 all = objectionGame.disputes();
        if (all > 0) _decide(1 + which % all, choice);
    }

    /// @notice The game ends some contest, or somebody settles it.
    function rule(uint256 which, uint256 choice) external timed {
        uint256 all = counterclaimGame.disputes();
        if (all > 0) _rule(1 + which % all, choice);
    }

    /// @notice Somebody concludes some counterclaim, if it is over.
    function conclude(uint256 which) external timed {
        if (counterclaims.last() > 0) _concludeOne(1 + which % counterclaims.last());
    }

    /// @notice What the two desks should hold for a task, and how much its present log waits for.
    function expectedObjections(bytes32 taskId)
        external
        view
        returns (uint256 atObjections, uint256 atCounterclaims, uint32 open, uint32 counted)
    {
        for (uint256 number = 1; number <= objectionGame.disputes(); ++number) {
            Objection memory o = objections.objection(number);
            if (o.taskId != taskId || o.ending == Ending.Settled) continue;
            atObjections += o.bond;
            ++open;
        }
        for (uint256 number = 1; number <= counterclaims.last(); ++number) {
            Counterclaim memory c = counterclaims.counterclaimed(number);
            if (c.taskId != taskId || c.concluded) continue;
            atCounterclaims += c.bond;
            ++open;
        }
        for (uint256 dispute = 1; dispute <= counterclaimGame.disputes(); ++dispute) {
            Contest memory d = counterclaims.contests(dispute);
            bool is_ = counterclaims.counterclaimed(d.counterclaim).taskId == taskId;
            if (is_ && d.ending != Ending.Settled) atCounterclaims += d.bond;
        }
        return (atObjections, atCounterclaims, open, objections.objected(taskId).open);
    }

    function desksOfObjections() external view returns (address, address) {
        return (address(objections), address(counterclaims));
    }

    function _rewarded(bytes32 taskId) internal view override returns (uint256) {
        return _paid[taskId][registry.task(taskId).began];
    }

    function _endObjections(uint256 choice) internal override {
        for (uint256 number = 1; number <= objectionGame.disputes(); ++number) {
            Objection memory o = objections.objection(number);
            if (o.taskId == id && o.ending != Ending.Settled) return _decide(number, choice);
        }
        for (uint256 number = 1; number <= counterclaims.last(); ++number) {
            Counterclaim memory c = counterclaims.counterclaimed(number);
            if (c.taskId == id && !c.concluded) return _endCounterclaim(number, c, choice);
        }
    }

    function _object(address party, uint32 index) private returns (bool worked) {
        _announceObjection(party, index);
        bytes memory call = abi.encodeCall(objections.object, (id, _segment(index), _opening()));
        vm.prank(party);
        (worked,) = address(objections).call(call);
        if (worked) ++objected;
    }

    function _counter(address party, uint32 index) private returns (bool worked) {
        Claim memory claim = _bad(index);
        LogProof memory logProof = LogProof(_inclusion(index), _inclusion(index + 1));
        _announceCounterclaim(party, _hash(claim));
        vm.prank(party);
        (worked,) = address(counterclaims)
            .call(abi.encodeCall(counterclaims.counterclaim, (id, claim, logProof, new Rerun[](0), type(uint128).max)));
        if (worked) ++counterclaimed;
    }

    function _dispute(address party, uint256 number, ClaimCharge memory charge) private returns (bool worked) {
        _announceContest(party, number, charge);
        Reordered memory none = Reordered(0, new bytes32[](0));
        bytes memory call = abi.encodeCall(counterclaims.contest, (number, charge, new Rerun[](0), none, _opening()));
        vm.prank(party);
        (worked,) = address(counterclaims).call(call);
        if (worked) ++contested;
    }

    function _isDrawn(uint32 segment) private view returns (bool) {
        if (!proofs.isDrawn(id)) return false;
        uint32[] memory drawn = proofs.drawnSegments(id);
        return drawn[0] == segment || drawn[1] == segment;
    }

    function _segmentOf(Counterclaim memory c) private view returns (uint32 segment) {
        while (_hash(_bad(segment)) != c.entry) ++segment;
    }

    function _decide(uint256 number, uint256 choice) private {
        if (!_decided[number]) {
            _decided[number] = true;
            objectionGame.report(number, choice % 3 > 0);
            if (choice % 4 == 0) return;
        }
        Objection memory o = objections.objection(number);
        bool fell = objections.objected(o.taskId).fell && registry.task(o.taskId).began == o.began;
        bool isMoot = fell && o.ending != Ending.Fell;
        bool due = o.ending != Ending.Settled && (o.ending != Ending.None || isMoot);
        uint256 gained = isMoot || o.ending == Ending.Fell ? o.bond : 0;
        uint256 reward = !isMoot && o.ending == Ending.Fell ? _rewardOf(o.taskId, o.bond) : 0;
        uint256 before = vault.free(o.objector);
        (bool worked,) = address(objections).call(abi.encodeCall(objections.settleDispute, (number)));
        vm.assertTrue(worked == due);
        vm.assertEq(vault.free(o.objector) - before, due ? gained + reward : 0);
        if (due && isMoot) ++mootObjections;
        if (due && o.ending == Ending.Fell) _noteFall(o.taskId, o.bond);
    }

    function _rule(uint256 dispute, uint256 choice) private {
        if (!_ruled[dispute]) {
            _ruled[dispute] = true;
            counterclaimGame.report(dispute, choice % 3 > 0);
            if (choice % 4 == 0) return;
        }
        Contest memory d = counterclaims.contests(dispute);
        Counterclaim memory c = counterclaims.counterclaimed(d.counterclaim);
        bool isMoot = (c.fell && d.ending != Ending.Fell) || (c.concluded && !c.fell);
        bool due = d.ending != Ending.Settled && (d.ending != Ending.None || isMoot);
        uint256 gained = isMoot ? d.bond : 0;
        if (!isMoot && d.ending == Ending.Fell) gained = d.bond;
        address solver = registry.task(c.taskId).solver;
        if (!isMoot && d.ending == Ending.Fell && d.challenger == solver) gained += c.bond / 2;
        uint256 before = vault.free(d.challenger);
        (bool worked,) = address(counterclaims).call(abi.encodeCall(counterclaims.settleDispute, (dispute)));
        vm.assertTrue(worked == due);
        vm.assertEq(vault.free(d.challenger) - before, due ? gained : 0);
    }

    function _endCounterclaim(uint256 number, Counterclaim memory c, uint256 choice) private {
        for (uint256 dispute = 1; dispute <= counterclaimGame.disputes(); ++dispute) {
            Contest memory d = counterclaims.contests(dispute);
            if (d.counterclaim == number && d.ending != Ending.Settled) return _rule(dispute, choice);
        }
        if (vm.getBlockTimestamp() <= c.until) vm.warp(c.until + 1);
        _concludeOne(number);
    }

    function _concludeOne(uint256 number) private {
        Counterclaim memory c = counterclaims.counterclaimed(number);
        ObjectionCount memory count = objections.objected(c.taskId);
        bool isMoot = count.fell && count.began == c.began;
        bool isOver = vm.getBlockTimestamp() > c.until && c.open == 0;
        bool due = !c.fell && !c.concluded && (isMoot || isOver);
        uint256 gained = due ? c.bond + (isMoot ? 0 : _rewardOf(c.taskId, c.bond)) : 0;
        uint256 before = vault.free(c.objector);
        (bool worked,) = address(counterclaims).call(abi.encodeCall(counterclaims.conclude, (number)));
        vm.assertTrue(worked == due);
        vm.assertEq(vault.free(c.objector) - before, gained);
        if (due && isMoot) ++mootObjections;
        if (due && !isMoot) _noteFall(c.taskId, c.bond);
    }

    /// @dev The plain words of docs/spec/market.md: the bond, between a sixteenth and a quarter, and the tax is left.
    function _rewardOf(bytes32 taskId, uint256 bond) private view returns (uint256) {
        Terms memory s = registry.terms(taskId);
        uint256 least = s.solverStake / 16;
        uint256 most = s.solverStake / 4;
        uint256 untaxed = s.solverStake - s.solverStake / 2 - jackpot.tax(s.jackpot);
        if (untaxed < most) most = untaxed;
        return bond < least ? least : bond < most ? bond : most < least ? least : most;
    }

    function _noteFall(bytes32 taskId, uint256 bond) private {
        ++fallen;
        _paid[taskId][registry.task(taskId).began] = _rewardOf(taskId, bond);
    }
}
