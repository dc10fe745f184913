// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StartParams} from "../../../contracts/dispute/IDisputeGame.sol";
import {Desk} from "../../../contracts/incentives/Desk.sol";
import {ForcedErrors} from "../../../contracts/incentives/ForcedErrors.sol";
import {IJackpot} from "../../../contracts/incentives/IJackpot.sol";
import {IBeacon, PATIENCE} from "../../../contracts/market/IBeacon.sol";
import {ClaimCharge, IChallenges} from "../../../contracts/market/IChallenges.sol";
import {DataDemand} from "../../../contracts/market/IDataDemands.sol";
import {Segment} from "../../../contracts/market/IObjections.sol";
import {IProfiles} from "../../../contracts/market/IProfiles.sol";
import {IProvenSteps} from "../../../contracts/market/IProvenSteps.sol";
import {ISeats, Seating} from "../../../contracts/market/ISeats.sol";
import {ISettlement} from "../../../contracts/market/ISettlement.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {Disclosure, IVerdicts, Look, Placed, Verdict} from "../../../contracts/market/IVerdicts.sol";
import {Charge, Opening, Portion, Reordered, Rerun, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {Claim, Ending, LogProof, Outcome, Status, Terms} from "../../../contracts/market/TaskTypes.sol";
import {NaiveLog} from "../commitments/NaiveLog.sol";
import {Base, MarketDeployment, ToyBeacon, VectorHash} from "./MarketDeployment.sol";

/// @notice A market with one task of five checkpoints, and one function per verb that takes the task one stage further.
abstract contract MarketBase is MarketDeployment {
    uint64 internal constant THRESHOLD = 1 << 40;
    bytes internal constant HEADER = "the header, which only the game reads";
    bytes internal constant PAYLOAD = "what the challenger opens, which only the game reads too";

    uint32 internal constant PROFILED = 2;
    uint32 internal constant RERUNS = 3;
    uint32 internal constant MARGIN = 4;
    uint32 internal constant WORST = 4;

    uint128 internal _price = 7 ether;
    uint32 internal _promise = 50 minutes;
    bytes32[] internal log;
    bytes32 internal id;
    bytes32 internal secret = "the secret of the seating";
    bytes32 internal salt = "salt";
    // Kept: a call of sha256 between a prank and what it is for would take the prank.
    bytes32 private _rerunPrograms;

    function setUp() public virtual {
        vm.roll(1_000);
        vm.warp(1_000_000);
        toyBeacon = new ToyBeacon();
        _deploy(_newBeacon());
        _endow();
        delete log;
        for (uint256 i = 0; i <= _segments(); ++i) {
            log.push(_entryAt(i));
        }
        _rerunPrograms = NaiveLog.root(_programs(), 0, RERUNS);
        id = registry.computeTaskId(submitter, 0, _terms());
    }

    function _program() internal view virtual returns (bytes32) {
        return "program";
    }

    function _entryAt(uint256 index) internal view virtual returns (bytes32) {
        return keccak256(abi.encode("state", index));
    }

    /// @dev Which beacon draws.
    function _newBeacon() internal virtual returns (IBeacon) {
        return toyBeacon;
    }

    function _segments() internal pure virtual returns (uint32) {
        return 4;
    }

    function _terms() internal view virtual returns (Terms memory s) {
        s.program = _program();
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
        // 8 ether at most.
        s.unitPrice = uint128(uint256(8 ether) * (1 << 32) / 1e12);
        s.secondPrice = 0;
        s.solverStake = 5 ether;
        s.verifierStake = 4 ether;
        s.bond = 1 ether;
        s.verifierFee = 1 ether;
        s.jackpot = 2 ether;
        s.bidWindow = 10 minutes;
        s.seatWindow = 5 minutes;
        s.trainingWindow = 1 hours;
        s.verificationWindow = 30 minutes;
        s.watchWindow = 15 minutes;
        s.disclosureWindow = 5 minutes;
        s.challengeWindow = 20 minutes;
        s.clock = 10 minutes;
    }

    function _exact(Terms memory s) internal pure returns (Terms memory) {
        (s.reruns, s.rerunCount, s.profiled, s.margin, s.profileWindow) = (0, 0, 0, 0, 0);
        return s;
    }

    // One function per stage; each takes the task there from the one before.

    function _submit() internal {
        vm.prank(submitter);
        vm.assertEq(registry.submit(_terms()), id);
    }

    /// @dev A seat for `who`, with the seed that makes one of its claims the only one.
    function _seat(address who) internal {
        _seat(who, bytes32(0));
    }

    function _seat(address who, bytes32 commitment) internal {
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
        vm.prank(who);
        seats.claim(id, 0, commitment);
        _pass(_terms().seatWindow + 1);
        seats.decide(id);
    }

    function _give(uint64 round, bytes32 seed) internal virtual {
        if (!beacon.recorded(round)) toyBeacon.give(round, seed);
    }

    function _profile() internal {
        _profile(verifier);
    }

    function _profile(address who) internal {
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        vm.prank(who);
        profiles.post(id, portions, root, witnesses, "profile");
    }

    function _conclude() internal {
        _pass(_terms().profileWindow + 1);
        profiles.conclude(id);
    }

    function _award() internal {
        _revealed();
        registry.award(id);
    }

    /// @dev One bid, which can be concluded.
    function _revealed() internal returns (bytes32 roundId) {
        roundId = auction.lastRound(address(registry), id);
        bytes32 commitment = keccak256(abi.encode(roundId, solver, _price, _promise, salt));
        vm.prank(solver);
        auction.bid(roundId, commitment);
        vm.warp(auction.round(roundId).bidUntil + 1);
        auction.reveal(roundId, solver, _price, _promise, salt);
    }

    function _progress(uint64 size) internal {
        (bytes32 root, bytes32[] memory path) = (_root(size), _consistency(size));
        vm.prank(solver);
        proofs.post(id, size, root, path);
    }

    function _commit() internal {
        uint64 size = uint64(log.length);
        (bytes32 root, bytes32[] memory path, bytes32[] memory first) = (_root(size), _consistency(size), _inclusion(0));
        vm.prank(solver);
        proofs.commit(id, size, root, path, "proof", first);
    }

    /// @dev A verifier's seat, whose duty is as the test wants it.
    function _seatVerifier(address who, bool forced) internal {
        _give(proofs.proof(id).round, "draw");
        _seat(who, ForcedErrors.commitment(who, id, secret));
        _giveDuty(forced);
    }

    function _giveDuty(bool forced) internal {
        uint32 number = registry.task(id).seating;
        uint256 seed = 1;
        while (ForcedErrors.isForced(RATE, bytes32(seed), id, number, secret) != forced) ++seed;
        _give(seats.seating(id).dutyRound, bytes32(seed));
    }

    /// @dev Posts what the duty asks for.
    function _verdict(address who, bool accepts) internal {
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(accepts);
        bytes32 sealedClaim = "nothing";
        (bool forced, uint32 index, bytes32 wrong) = _duty();
        if (forced) {
            sealedClaim = ForcedErrors.sealedClaim(id, registry.task(id).seating, salt, claims[index]);
            _plant(claims[index], wrong);
        }
        vm.prank(who);
        verdicts.post(id, claims, logProofs, _looksAt(claims, accepts), sealedClaim);
    }

    /// @dev Second looks that a verdict has.
    function _looksAt(Claim[] memory, bool) internal view virtual returns (Look[] memory) {
        return new Look[](0);
    }

    function _duty() internal view returns (bool forced, uint32 index, bytes32 wrong) {
        (bytes32 seed, uint32 number) = (seats.dutySeed(id), registry.task(id).seating);
        return (
            ForcedErrors.isForced(RATE, seed, id, number, secret),
            ForcedErrors.index(seed, id, number, secret, _terms().draws),
            ForcedErrors.errorRoot(seed, id, number, secret)
        );
    }

    function _openWatch() internal {
        _drawWatcher();
        verdicts.openWatch(id);
    }

    function _drawWatcher() internal {
        Verdict memory v = verdicts.verdict(id);
        uint256 seed = 1;
        while (!sortition.isWatcher(watcher, 0, id, v.seating, v.watchFixedAt, bytes32(seed))) ++seed;
        _give(v.watchRound, bytes32(seed));
    }

    function _disclose(address who, bool accepts) internal {
        vm.warp(verdicts.verdict(id).watchUntil + 1);
        Disclosure memory d = _disclosure(accepts);
        vm.prank(who);
        verdicts.disclose(id, d);
    }

    function _disclosure(bool accepts) internal view returns (Disclosure memory d) {
        d.secret = secret;
        (bool forced, uint32 index,) = _duty();
        if (!forced) return d;
        (Claim[] memory claims,) = _claims(accepts);
        (d.salt, d.claim, d.entries) = (salt, claims[index], _entries(accepts, true));
    }

    function _challenge() internal returns (uint256 number) {
        return _challenge(challenger);
    }

    function _challenge(address who) internal returns (uint256 number) {
        return _challenge(who, _chargeOf(0, verdicts.verdict(id).rejecting == 0));
    }

    function _challenge(address who, ClaimCharge memory charge) internal returns (uint256 number) {
        _announceCharge(who, charge);
        vm.prank(who);
        return challenges.challenge(id, charge, _opening());
    }

    /// @dev Charges the replay of a claim as it is in truth.
    function _chargeOf(uint32 index, bool accepts) internal view returns (ClaimCharge memory charge) {
        (Claim[] memory claims,) = _claims(accepts);
        (charge.index, charge.claim, charge.entries, charge.kind) = (index, claims[index], _entries(accepts, false), 1);
    }

    function _opening() internal pure returns (Opening memory) {
        return Opening(HEADER, PAYLOAD, type(uint128).max);
    }

    /// @dev The game ends a dispute, and somebody settles it.
    function _end(uint256 number, bool asserterWon) internal {
        game.report(number, asserterWon);
        challenges.settleDispute(number);
    }

    /// @dev The last dispute.
    function _finish(bool asserterWon) internal {
        _end(game.disputes(), asserterWon);
    }

    function _endProfile(uint256 number, bool asserterWon) internal {
        profileGame.report(number, asserterWon);
        profiles.settleDispute(number);
    }

    function _finishProfile(bool asserterWon) internal {
        _endProfile(profileGame.disputes(), asserterWon);
    }

    /// @dev Charges the replay of a claim that the caller names.
    function _challengeAs(address who, Placed memory placed, uint32 index) internal returns (uint256) {
        ClaimCharge memory charge;
        (charge.index, charge.claim, charge.look, charge.entries) = (index, placed.claim, placed.look, placed.entries);
        charge.kind = 1;
        return _challenge(who, charge);
    }

    function _challengeProfile() internal {
        _announceProfileCharge(challenger, Charge.Portion, 0, 0);
        vm.prank(challenger);
        profiles.challengePortion(id, _portions(), 0, _opening());
    }

    /// @dev Commits to the true entry of a claim without a second look, in the last seconds of the watch.
    function _watch(address who, uint32 index, bool accepts) internal {
        (Claim[] memory claims,) = _claims(accepts);
        uint32 number = registry.task(id).seating;
        vm.warp(verdicts.verdict(id).watchUntil);
        vm.prank(who);
        bytes32 entry = _hashes(claims)[index];
        jackpot.watch(id, 0, keccak256(abi.encode(who, id, number, index, entry, salt)));
    }

    /// @dev Shows the planted error and the claim that stands.
    function _catch(address who, uint32 index, bool accepts) internal {
        (Claim[] memory claims,) = _claims(accepts);
        Placed memory stands = Placed(claims[index], 0, _entries(accepts, false));
        (,, bytes32 wrong) = _duty();
        Claim memory said = claims[index];
        Placed memory posted = Placed(said, 0, _entries(accepts, true));
        posted.claim = abi.decode(abi.encode(said), (Claim));
        _plant(posted.claim, wrong);
        jackpot.claim(id, registry.task(id).seating, who, 0, index, salt, abi.encode(posted, stands));
    }

    /// @dev A planted error: in the replay, or where its root is public in the receipt.
    function _plant(Claim memory claim, bytes32 wrong) internal view {
        if (registry.terms(id).margin == 0) claim.receipt = wrong;
        else claim.replay = wrong;
    }

    function _toProfiled() internal {
        _submit();
        _seat(verifier);
        _profile();
    }

    function _toBidding() internal {
        _toProfiled();
        _conclude();
    }

    function _toTraining() internal {
        _toBidding();
        _award();
    }

    function _toCommitted() internal {
        _toTraining();
        _progress(3);
        _commit();
    }

    function _toVerifying(bool forced) internal {
        _toCommitted();
        _seatVerifier(verifier, forced);
    }

    function _toWatched(bool accepts, bool forced) internal {
        _toVerifying(forced);
        _verdict(verifier, accepts);
        _openWatch();
    }

    function _toContested(bool accepts) internal {
        _toVerifying(false);
        _judge(verifier, accepts);
    }

    /// @dev Who sits posts a verdict, and discloses.
    function _judge(address who, bool accepts) internal {
        _verdict(who, accepts);
        _openWatch();
        _disclose(who, accepts);
    }

    function _judgeNext(bool accepts) internal {
        _seatVerifier(nextVerifier, false);
        _judge(nextVerifier, accepts);
    }

    /// @dev In exact mode, which has no profile.
    function _toExactlyCommitted() internal {
        _submit();
        _award();
        _commit();
    }

    function _toExactlyVerifying(bool forced) internal {
        _toExactlyCommitted();
        _seatVerifier(verifier, forced);
    }

    function _settle() internal {
        _pass(_terms().challengeWindow + 1);
        settlement.settle(id);
    }

    /// @dev In the block before the next call.
    function _announceLeak(address who, bytes32 leaked) internal {
        verdicts.announce(keccak256(abi.encode(who, id, keccak256(abi.encode(leaked)))));
        vm.roll(vm.getBlockNumber() + 1);
    }

    function _reportLeak(address who) internal {
        _announceLeak(who, secret);
        vm.prank(who);
        verdicts.reportLeak(id, secret);
    }

    /// @dev In the block before the next call.
    function _announceConviction(address who, Witness memory rerun, uint8 component) internal {
        profiles.announce(keccak256(abi.encode(who, id, keccak256(abi.encode(rerun, component)))));
        vm.roll(vm.getBlockNumber() + 1);
    }

    /// @dev In the block before the next call, which opens with `PAYLOAD`.
    function _announceCharge(address who, ClaimCharge memory charge) internal {
        challenges.announce(_charged(who, charge, PAYLOAD));
        vm.roll(vm.getBlockNumber() + 1);
    }

    /// @dev The same about a profile.
    function _announceProfileCharge(address who, Charge charge, uint32 index, uint8 component) internal {
        profiles.announce(
            keccak256(abi.encode(who, id, keccak256(abi.encode(charge, index, component, keccak256(PAYLOAD)))))
        );
        vm.roll(vm.getBlockNumber() + 1);
    }

    /// @dev What announces a challenge of a claim.
    function _charged(address who, ClaimCharge memory charge, bytes memory payload) internal view returns (bytes32) {
        bytes32 evidence =
            keccak256(abi.encode(charge.index, charge.kind, charge.component, charge.rerun, keccak256(payload)));
        return keccak256(abi.encode(who, id, evidence));
    }

    function _convict(address who, Witness memory rerun, uint8 component) internal {
        _announceConviction(who, rerun, component);
        vm.prank(who);
        profiles.convict(id, _portions(), rerun, component);
    }

    /// @dev In the block before the next call, which opens with `PAYLOAD`.
    function _announceObjection(address who, uint32 index) internal {
        objections.announce(keccak256(abi.encode(who, id, keccak256(abi.encode(index, keccak256(PAYLOAD))))));
        vm.roll(vm.getBlockNumber() + 1);
    }

    // Evidence

    /// @dev A segment that the verdict has drawn, or has not.
    function _one(bool drawn) internal view returns (uint32 index) {
        uint32[] memory segments = proofs.drawnSegments(id);
        while ((index == segments[0] || index == segments[1]) != drawn) ++index;
    }

    function _segment(uint32 index) internal view returns (Segment memory) {
        return Segment(index, log[index], log[index + 1], LogProof(_inclusion(index), _inclusion(index + 1)));
    }

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
        return NaiveLog.consistencyPath(log, proofs.proof(id).size, size);
    }

    function _inclusion(uint256 index) internal view returns (bytes32[] memory) {
        return NaiveLog.inclusionPath(log, index, 0, log.length);
    }

    /// @dev The true claims. A rejecting verdict has one bad claim, the last.
    function _claims(bool accepts) internal view virtual returns (Claim[] memory claims, LogProof[] memory logProofs) {
        uint32[] memory segments = proofs.drawnSegments(id);
        claims = new Claim[](segments.length);
        logProofs = new LogProof[](segments.length);
        for (uint256 i = 0; i < segments.length; ++i) {
            uint32 segment = segments[i];
            claims[i].segment = segment;
            claims[i].start = log[segment];
            claims[i].end = log[segment + 1];
            claims[i].replay = keccak256(abi.encode("replay", segment));
            claims[i].distances = [uint256(1), 2, 0];
            claims[i].references = [uint256(1 << 24), 1 << 24, 0];
            if (registry.terms(id).margin == 0) {
                (claims[i].before, claims[i].receipt) =
                (keccak256(abi.encode("before", segment)), keccak256(abi.encode("receipt", segment)));
            }
            logProofs[i] = LogProof(_inclusion(segment), _inclusion(segment + 1));
        }
        if (!accepts) claims[claims.length - 1].distances[1] = 3;
    }

    /// @dev Of the verdict, as posted if an error is planted in it.
    function _entries(bool accepts, bool planted) internal view returns (bytes32[] memory) {
        (Claim[] memory claims,) = _claims(accepts);
        (bool forced, uint32 index, bytes32 wrong) = _duty();
        if (forced && planted) _plant(claims[index], wrong);
        return _hashes(claims);
    }

    /// @dev Entries of claims without second looks.
    function _hashes(Claim[] memory claims) internal pure returns (bytes32[] memory entries) {
        entries = new bytes32[](claims.length);
        for (uint256 i = 0; i < claims.length; ++i) {
            entries[i] = keccak256(abi.encode(keccak256(abi.encode(claims[i])), bytes32(0)));
        }
    }

    function _expectStatus(Status status) internal view {
        vm.assertEq(uint256(registry.task(id).status), uint256(status));
    }

    /// @dev What shares of slashes, bonds and prices have left to fund and treasury.
    function _rest() internal view returns (uint256) {
        return vault.free(treasury) + vault.pot(address(jackpot), jackpot.FUND()) - 100 ether;
    }
}
