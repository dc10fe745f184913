// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlockBeacon} from "../../../contracts/market/BlockBeacon.sol";
import {TaskMarket} from "../../../contracts/market/TaskMarket.sol";
import {Claim, Dispute, LogProof, Status, Task, Terms} from "../../../contracts/market/TaskTypes.sol";
import {Base} from "../Base.sol";
import {NaiveLog} from "../commitments/NaiveLog.sol";
import {ToyGame} from "./ToyGame.sol";

/// @notice A market with one task of five checkpoints, and one helper per verb that takes the task one stage further.
abstract contract MarketBase is Base {
    uint256 internal _fee = 10 ether;
    uint128 internal _price = 7 ether;
    uint64 internal constant THRESHOLD = 1 << 40;
    bytes internal constant HEADER = "the header, which only the game reads";
    bytes internal constant PAYLOAD = "what the challenger opens, which only the game reads too";

    TaskMarket internal market;
    BlockBeacon internal beacon;
    ToyGame internal game;
    address internal submitter = account("submitter");
    address internal solver = account("solver");
    address internal verifier = account("verifier");
    address internal nextVerifier = account("next verifier");
    address internal challenger = account("challenger");
    address internal treasury = account("treasury");
    bytes32[] internal log;
    bytes32 internal id;

    function setUp() public virtual {
        vm.roll(1_000);
        vm.warp(1_000_000);
        beacon = new BlockBeacon();
        market = new TaskMarket(beacon, treasury);
        game = new ToyGame();
        market.setGame(address(game));
        address[5] memory accounts = [submitter, solver, verifier, nextVerifier, challenger];
        for (uint256 i = 0; i < accounts.length; ++i) {
            vm.deal(accounts[i], 1_000 ether);
        }
        delete log;
        for (uint256 i = 0; i <= _segments(); ++i) {
            log.push(keccak256(abi.encode("state", i)));
        }
        id = market.computeTaskId(submitter, 0, _terms());
    }

    function _segments() internal pure virtual returns (uint32) {
        return 4;
    }

    function _terms() internal view virtual returns (Terms memory s) {
        s.program = "program";
        s.constants = "constants";
        s.initialState = log[0];
        s.document = "document";
        s.steps = 10 * uint64(_segments());
        s.interval = 10;
        s.draws = 2;
        s.workUnits = 1e12;
        s.solverStake = 5 ether;
        s.verifierStake = 3 ether;
        s.bond = 1 ether;
        s.verifierFee = 2 ether;
        s.trainingWindow = 1 hours;
        s.verificationWindow = 30 minutes;
        s.challengeWindow = 20 minutes;
        s.clock = 10 minutes;
    }

    // One helper per stage; each takes the task there from the one before.

    function _submit() internal {
        vm.prank(submitter);
        vm.assertEq(market.submitTask{value: _fee}(_terms()), id);
    }

    function _join(address who) internal {
        vm.prank(who);
        market.joinAsVerifier{value: _terms().verifierStake}(id);
    }

    function _profile() internal {
        vm.prank(verifier);
        market.postProfile(id, _thresholds(), "profile");
    }

    function _accept() internal {
        vm.prank(solver);
        market.acceptTask{value: _terms().solverStake}(id, _price, _thresholds());
    }

    function _progress(uint64 size) internal {
        (bytes32 root, bytes32[] memory path) = (_root(size), _consistency(size));
        vm.prank(solver);
        market.postProgress(id, size, root, path);
    }

    function _commit() internal {
        uint64 size = uint64(log.length);
        (bytes32 root, bytes32[] memory path, bytes32[] memory first) = (_root(size), _consistency(size), _inclusion(0));
        vm.prank(solver);
        market.commitProof(id, size, root, path, "proof", first);
    }

    function _draw() internal {
        vm.roll(market.task(id).round + 1);
        market.draw(id);
    }

    function _verdict(address who, bool accepts) internal {
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(accepts);
        vm.prank(who);
        market.postVerdict(id, claims, proofs);
    }

    function _challenge() internal returns (uint256 number) {
        return _challenge(challenger);
    }

    function _challenge(address who) internal returns (uint256 number) {
        Claim memory claim = _claim(0);
        uint256 bond = market.bondOf(id);
        vm.prank(who);
        market.challenge{value: bond}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
        return game.disputes();
    }

    function _toTraining() internal {
        _submit();
        _join(verifier);
        _profile();
        _accept();
    }

    function _toDrawn() internal {
        _toTraining();
        _progress(3);
        _commit();
        _draw();
    }

    function _toVerdict(bool accepts) internal {
        _toDrawn();
        _verdict(verifier, accepts);
    }

    function _toDisputed(bool accepts) internal {
        _toVerdict(accepts);
        _challenge();
    }

    function _pass(uint256 time) internal {
        vm.warp(vm.getBlockTimestamp() + time);
    }

    // Evidence

    function _thresholds() internal pure returns (uint64[3] memory) {
        return [THRESHOLD, 2 * THRESHOLD, 3 * THRESHOLD];
    }

    function _root(uint64 size) internal view returns (bytes32) {
        return NaiveLog.root(log, 0, size);
    }

    function _consistency(uint64 size) internal view returns (bytes32[] memory) {
        return NaiveLog.consistencyPath(log, market.task(id).logSize, size);
    }

    function _inclusion(uint256 index) internal view returns (bytes32[] memory) {
        return NaiveLog.inclusionPath(log, index, 0, log.length);
    }

    function _claim(uint256 index) internal view returns (Claim memory) {
        (Claim[] memory claims,) = _claims(market.task(id).accepted);
        return claims[index];
    }

    /// @dev A rejecting verdict has one bad claim, the last.
    function _claims(bool accepts) internal view returns (Claim[] memory claims, LogProof[] memory proofs) {
        uint32[] memory segments = market.drawnSegments(id);
        claims = new Claim[](segments.length);
        proofs = new LogProof[](segments.length);
        for (uint256 i = 0; i < segments.length; ++i) {
            uint32 segment = segments[i];
            claims[i].segment = segment;
            claims[i].start = log[segment];
            claims[i].end = log[segment + 1];
            claims[i].replay = keccak256(abi.encode("replay", segment));
            claims[i].distances = [uint256(1), 2, 0];
            claims[i].references = [uint256(1 << 24), 1 << 24, 0];
            proofs[i] = LogProof(_inclusion(segment), _inclusion(segment + 1));
        }
        if (!accepts) claims[claims.length - 1].distances[1] = 3;
    }

    function _status() internal view returns (uint8) {
        return uint8(market.task(id).status);
    }

    function _expectStatus(Status status) internal view {
        vm.assertEq(uint256(_status()), uint256(status));
    }

    /// @dev What the task holds but for bonds, told from its stage and its terms alone.
    function _locked(bytes32 taskId) internal view returns (uint256 wei_) {
        Task memory t = market.task(taskId);
        Terms memory s = market.terms(taskId);
        if (t.status == Status.None || t.status == Status.Closed) return 0;
        wei_ = t.fee;
        if (t.verifier != address(0)) wei_ += s.verifierStake;
        if (t.solver != address(0)) wei_ += s.solverStake;
    }

    /// @dev All bonds that are not paid out, told from the terms and the order of the challenges.
    function _lockedBonds() internal view returns (uint256 wei_) {
        for (uint256 number = 1; number <= game.disputes(); ++number) {
            Dispute memory d = market.dispute(number);
            Terms memory s = market.terms(d.taskId);
            uint256 doubled = uint256(s.bond) * (d.earlier < 3 ? 1 << d.earlier : 8);
            if (!d.released) wei_ += doubled < s.verifierStake / 2 ? doubled : s.verifierStake / 2;
        }
    }

    function _expectConserved() internal view {
        uint256 credited = market.credits(submitter) + market.credits(solver) + market.credits(verifier)
            + market.credits(nextVerifier) + market.credits(challenger) + market.credits(treasury);
        vm.assertEq(address(market).balance, credited + _locked(id) + _lockedBonds());
    }
}
