// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlockBeacon} from "../../../contracts/market/BlockBeacon.sol";
import {IBeacon} from "../../../contracts/market/IBeacon.sol";
import {Portion, Rerun, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {Profiles} from "../../../contracts/market/Profiles.sol";
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

    uint32 internal constant PROFILED = 2;
    uint32 internal constant RERUNS = 3;
    uint32 internal constant MARGIN = 4;
    uint32 internal constant WORST = 4;

    TaskMarket internal market;
    Profiles internal profiles;
    BlockBeacon internal beacon;
    ToyGame internal game;
    ToyGame internal profileGame;
    address internal submitter = account("submitter");
    address internal solver = account("solver");
    address internal verifier = account("verifier");
    address internal nextVerifier = account("next verifier");
    address internal challenger = account("challenger");
    address internal treasury = account("treasury");
    bytes32[] internal log;
    bytes32 internal id;
    // Kept: a call of sha256 between a prank and what it is for would take the prank.
    bytes32 private _rerunPrograms;

    function setUp() public virtual {
        vm.roll(1_000);
        vm.warp(1_000_000);
        beacon = new BlockBeacon();
        game = new ToyGame();
        profileGame = new ToyGame();
        _deploy(beacon);
        address[5] memory accounts = [submitter, solver, verifier, nextVerifier, challenger];
        for (uint256 i = 0; i < accounts.length; ++i) {
            vm.deal(accounts[i], 1_000 ether);
        }
        delete log;
        for (uint256 i = 0; i <= _segments(); ++i) {
            log.push(keccak256(abi.encode("state", i)));
        }
        _rerunPrograms = NaiveLog.root(_programs(), 0, RERUNS);
        id = market.computeTaskId(submitter, 0, _terms());
    }

    function _deploy(IBeacon by) internal {
        market = new TaskMarket(by, treasury);
        profiles = new Profiles(market, treasury);
        profiles.setGame(address(profileGame));
        market.setGame(address(game), address(profiles));
    }

    function _segments() internal pure virtual returns (uint32) {
        return 4;
    }

    function _terms() internal view virtual returns (Terms memory s) {
        s.program = "program";
        s.constants = "constants";
        s.initialState = log[0];
        s.document = "document";
        s.reruns = _rerunPrograms;
        s.rerunCount = RERUNS;
        s.profiled = PROFILED;
        s.margin = MARGIN;
        s.profileWindow = 10 minutes;
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

    function _exact(Terms memory s) internal pure returns (Terms memory) {
        (s.reruns, s.rerunCount, s.profiled, s.margin, s.profileWindow) = (0, 0, 0, 0, 0);
        return s;
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
        _profile(verifier);
    }

    function _profile(address who) internal {
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        vm.prank(who);
        profiles.post(id, portions, root, witnesses, "profile");
    }

    /// @dev Its window passes before.
    function _accept() internal {
        _pass(_terms().profileWindow + 1);
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

    /// @dev Hashes of the reordered programs.
    function _programs() internal pure returns (bytes32[] memory programs) {
        programs = new bytes32[](RERUNS);
        for (uint256 j = 0; j < RERUNS; ++j) {
            programs[j] = keccak256(abi.encode("program", j));
        }
    }

    function _portions() internal pure returns (Portion[] memory portions) {
        portions = new Portion[](PROFILED);
        for (uint256 k = 0; k < PROFILED; ++k) {
            portions[k].end = keccak256(abi.encode("portion", k));
            portions[k].references = [uint256(1 << 64), 1 << 64, 1 << 64];
        }
    }

    /// @dev Rerun `WORST` parts most, in all components.
    function _rerun(uint256 index) internal pure returns (Rerun memory rerun) {
        rerun.end = keccak256(abi.encode("rerun", index));
        for (uint256 c = 0; c < 3; ++c) {
            uint256 most = (c + 1) * THRESHOLD / MARGIN / MARGIN;
            rerun.distances[c] = index > WORST ? most / 2 : most >> (WORST - index);
        }
    }

    function _leaves() internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](PROFILED * RERUNS);
        for (uint256 i = 0; i < leaves.length; ++i) {
            leaves[i] = keccak256(abi.encode(_rerun(i)));
        }
    }

    function _witness(uint32 index) internal pure returns (Witness memory) {
        return Witness(index, _rerun(index), NaiveLog.inclusionPath(_leaves(), index, 0, PROFILED * RERUNS));
    }

    /// @dev What an honest profile says.
    function _measured() internal pure returns (Portion[] memory, bytes32 root, Witness[3] memory) {
        Witness memory worst = _witness(WORST);
        return (_portions(), NaiveLog.root(_leaves(), 0, PROFILED * RERUNS), [worst, worst, worst]);
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
        _expectProfilesConserved();
    }

    /// @dev The bonds of disputes about profiles are in the other contract.
    function _expectProfilesConserved() internal view {
        uint256 owed = profiles.credits(submitter) + profiles.credits(solver) + profiles.credits(verifier)
            + profiles.credits(nextVerifier) + profiles.credits(challenger) + profiles.credits(treasury);
        for (uint256 number = 1; number <= profileGame.disputes(); ++number) {
            if (!profiles.dispute(number).released) owed += profiles.dispute(number).bond;
        }
        vm.assertEq(address(profiles).balance, owed);
    }
}
