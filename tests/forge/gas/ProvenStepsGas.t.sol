// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ClaimCharge} from "../../../contracts/market/IChallenges.sol";
import {Pin, StepProof} from "../../../contracts/market/IProvenSteps.sol";
import {Terms} from "../../../contracts/market/TaskTypes.sol";
import {Groth16Verifier} from "../../../contracts/zk/Groth16Verifier.sol";
import {VectorHash} from "../../../contracts/zk/VectorHash.sol";
import {MarketDeployment} from "../market/MarketDeployment.sol";
import {ProvenBase} from "../market/ProvenBase.sol";
import {MarketMeter} from "./MarketGasBase.sol";

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
