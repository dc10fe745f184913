// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Groth16Verifier} from "../../../contracts/zk/Groth16Verifier.sol";
import {Charge, ClaimCharge, MarketDeployment, NaiveLog, Opening, Portion, Reordered} from "../market/MarketBase.sol";
import {Terms, VectorHash, Witness} from "../market/MarketBase.sol";
import {Pin, ProvenBase, StepProof} from "../market/ProvenBase.sol";
import {MarketGasBase, MarketMeter} from "./MarketGasBase.sol";

/// @notice Gas of the calls about profiles, on record in .ci/gas.json. Two portions of three reruns.
contract ProfilesGas is MarketGasBase {
    function test_profile_post() public metered {
        _submit();
        _seat(verifier);
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        _begin(verifier);
        profiles.post(id, portions, root, witnesses, "profile");
    }

    function test_profile_challenge_portion() public metered {
        _toProfiled();
        _cheapGames();
        (Portion[] memory portions, Opening memory opening) = (_portions(), _opening());
        _announceProfileCharge(challenger, Charge.Portion, 1, 0);
        _begin(challenger);
        profiles.challengePortion(id, portions, 1, opening);
    }

    function test_profile_challenge_rerun() public metered {
        _toProfiled();
        _cheapGames();
        (Portion[] memory portions, Witness memory rerun, Opening memory opening) =
            (_portions(), _witness(WORST), _opening());
        uint256 j = WORST % RERUNS;
        Reordered memory reordered = Reordered(_programs()[j], NaiveLog.inclusionPath(_programs(), j, 0, RERUNS));
        _announceProfileCharge(challenger, Charge.Rerun, rerun.index, 0);
        _begin(challenger);
        profiles.challengeRerun(id, portions, rerun, reordered, opening);
    }

    function test_profile_challenge_distance() public metered {
        _toProfiled();
        _cheapGames();
        (Portion[] memory portions, Witness memory rerun, Opening memory opening) =
            (_portions(), _witness(WORST), _opening());
        _announceProfileCharge(challenger, Charge.Distance, rerun.index, 1);
        _begin(challenger);
        profiles.challengeDistance(id, portions, rerun, 1, opening);
    }

    function test_profile_challenge_reference() public metered {
        _toProfiled();
        _cheapGames();
        (Portion[] memory portions, Opening memory opening) = (_portions(), _opening());
        _announceProfileCharge(challenger, Charge.Reference, 1, 1);
        _begin(challenger);
        profiles.challengeReference(id, portions, 1, 1, opening);
    }

    function test_profile_convict() public metered {
        Witness memory hidden = _understated();
        Portion[] memory portions = _portions();
        _announceConviction(challenger, hidden, 2);
        _begin(challenger);
        profiles.convict(id, portions, hidden, 2);
    }

    function test_profile_announce_conviction() public metered {
        _begin(challenger);
        profiles.announce("digest");
    }

    /// @dev Part of the game's last transaction.
    function test_profile_report_lost() public metered {
        _toProfiled();
        _challengeProfile();
        _begin(address(profileGame));
        profiles.onResolved(1, false);
    }

    function test_profile_settle_stood() public metered {
        _meterSettlement(true);
    }

    function test_profile_settle_lost() public metered {
        _meterSettlement(false);
    }

    function test_profile_conclude() public metered {
        _toProfiled();
        _pass(_terms().profileWindow + 1);
        _begin(verifier);
        profiles.conclude(id);
    }

    function _meterSettlement(bool asserterWon) private {
        _toProfiled();
        _challengeProfile();
        profileGame.report(1, asserterWon);
        _begin(challenger);
        profiles.settleDispute(1);
    }

    /// @dev A posted profile of which rerun 0 demands more than the witness in component 2.
    function _understated() private returns (Witness memory hidden) {
        bytes32[] memory leaves = _leaves();
        hidden.rerun = _rerun(0);
        hidden.rerun.distances[1] = _rerun(WORST).distances[1] + 1;
        leaves[0] = keccak256(abi.encode(hidden.rerun));
        hidden.path = NaiveLog.inclusionPath(leaves, 0, 0, leaves.length);
        Witness memory worst = Witness(WORST, _rerun(WORST), NaiveLog.inclusionPath(leaves, WORST, 0, leaves.length));
        bytes32 root = NaiveLog.root(leaves, 0, leaves.length);
        _submit();
        _seat(verifier);
        vm.prank(verifier);
        profiles.post(id, _portions(), root, [worst, worst, worst], "profile");
    }
}

/// @notice Gas of proofs of steps, on record in .ci/gas.json. Only `test_steps_verify` is about pairings: the desk's
/// calls are metered with a verifier that costs next to nothing.
contract ProvenStepsGas is MarketMeter, ProvenBase {
    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        s.draws = 3;
    }

    function _hasher() internal override(MarketDeployment, ProvenBase) returns (VectorHash) {
        return super._hasher();
    }

    /// @dev Of a step with three hashes besides that of the vector after it: of the vector, the inputs, the targets.
    function test_steps_verify() public metered {
        Groth16Verifier verifier = new Groth16Verifier(vm.parseJsonBytes(_file(), ".key"));
        bytes32 context = vm.parseJsonBytes32(_file(), ".context");
        bytes32[] memory hashes = vm.parseJsonBytes32Array(_file(), ".hashes");
        bytes memory proof = vm.parseJsonBytes(_file(), ".proof");
        vm.cool(address(verifier));
        vm.resumeGasMetering();
        verifier.verify(context, hashes, proof);
    }

    function test_steps_pin() public metered {
        (Pin memory pin, Terms memory terms) = (_pin(true), _terms());
        _begin(submitter);
        provenSteps.pin(0, terms, pin);
    }

    function test_steps_prove_first() public metered {
        _pinned(true);
        _submit();
        _meterStep(0);
    }

    function test_steps_prove_next() public metered {
        _pinned(true);
        _submit();
        provenSteps.prove(id, 0, _vector(0), 0, _proofs(0, 1));
        _meterStep(1);
    }

    /// @dev Of one integer: every twenty more cost one more permutation.
    function test_steps_tie() public metered {
        _pinned(true);
        bytes memory words = _words(0);
        _begin(challenger);
        provenSteps.tie(id, TYPES, words);
    }

    function test_challenge_settle_by_proof_stood() public metered {
        _meterSettlement(0);
    }

    function test_challenge_settle_by_proof_lost() public metered {
        _meterSettlement(1);
    }

    function _meterStep(uint256 step) private {
        (StepProof[] memory steps, bytes32 first) = (_proofs(step, 1), _vector(0));
        _begin(challenger);
        provenSteps.prove(id, 0, first, uint32(step), steps);
    }

    function _meterSettlement(uint256 wrong) private {
        lie = wrong;
        _pinned(true);
        _toContested(true);
        uint256 number = _challenge();
        ClaimCharge memory charge = _chargeOf(0, true);
        bytes32 shown = _proveAndTie(charge.claim.segment);
        _begin(challenger);
        challenges.settleByProof(number, charge, shown);
    }

    function _proveAndTie(uint32 segment) private returns (bytes32 shown) {
        uint256 step = INTERVAL * segment;
        _prove(segment);
        _tie(step);
        _tie(step + INTERVAL);
        return _state(step + INTERVAL);
    }

    function _file() private view returns (string memory) {
        return vm.readFile("fixtures/vectors/step_proof.json");
    }
}
