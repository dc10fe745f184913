// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IProvenSteps, Pin, StepProof} from "../../../contracts/market/IProvenSteps.sol";
import {IStepVerifier} from "../../../contracts/zk/IStepVerifier.sol";
import {VectorState} from "../../../contracts/zk/VectorState.sol";
import {Claim, LogProof, MarketBase, NaiveLog, VectorHash} from "./MarketBase.sol";

/// @notice A proof is what it proves, in clear: what the desk does with proofs, without the pairings. Real proofs meet
/// the real desk in the Python tests.
contract ToyStepVerifier is IStepVerifier {
    bool public immutable exact;

    constructor(bool exact_) {
        exact = exact_;
    }

    function verify(bytes32 context, bytes32[] calldata hashes, bytes calldata proof) external pure returns (bool) {
        return keccak256(proof) == keccak256(abi.encode(context, hashes));
    }
}

/// @notice The market's task, whose states hold one number each that grows from step to step, with a proof of every
/// step.
abstract contract ProvenBase is MarketBase {
    uint32 internal constant INTERVAL = 10;
    uint8 internal constant SCALE = 20;
    bytes internal constant TYPES = abi.encodePacked(uint8(1), uint8(1), uint32(1));
    /// @dev By how much the verifier's replay is too large, in steps.
    uint256 internal lie;
    VectorHash private _vectorHash;

    function _hasher() internal virtual override returns (VectorHash) {
        _vectorHash = new VectorHash(vm.parseJsonBytes(vm.readFile("fixtures/vectors/vector_hash.json"), ".constants"));
        return _vectorHash;
    }

    function stateRoot(bytes calldata types, bytes calldata words) external pure returns (bytes32) {
        return VectorState.root(types, words);
    }

    function _state(uint256 step) internal view returns (bytes32) {
        return this.stateRoot(TYPES, _words(step));
    }

    /// @dev The state before a step: 1 and as many 2^-15 as there were steps.
    function _words(uint256 step) internal pure returns (bytes memory) {
        uint256 word = 0x3f800000 + (step << 8);
        return abi.encodePacked(uint8(word), uint8(word >> 8), uint8(word >> 16), uint8(word >> 24));
    }

    function _vector(uint256 step) internal view returns (bytes32) {
        int256[] memory vector = new int256[](1);
        vector[0] = int256((1 << SCALE) + (step << 5));
        return _vectorHash.hash(vector);
    }

    function _entryAt(uint256 index) internal view virtual override returns (bytes32) {
        return _state(INTERVAL * index);
    }

    /// @dev What an honest replay of the segments gives, and a lie on top.
    function _claims(bool accepts)
        internal
        view
        virtual
        override
        returns (Claim[] memory claims, LogProof[] memory logProofs)
    {
        (claims, logProofs) = super._claims(accepts);
        for (uint256 i = 0; i < claims.length; ++i) {
            claims[i].replay = _state(INTERVAL * (claims[i].segment + 1) + lie);
        }
    }

    function _data(uint256 step) internal pure returns (bytes32[] memory data) {
        data = new bytes32[](2);
        (data[0], data[1]) = (keccak256(abi.encode("inputs", step)), keccak256(abi.encode("targets", step)));
    }

    function _batches() internal pure returns (bytes32[] memory entries) {
        entries = new bytes32[](INTERVAL * _segments());
        for (uint256 step = 0; step < entries.length; ++step) {
            entries[step] = keccak256(abi.encode(_data(step)));
        }
    }

    function _pin(bool exact) internal returns (Pin memory) {
        bytes32[] memory entries = _batches();
        bytes32 root = NaiveLog.root(entries, 0, entries.length);
        return Pin(new ToyStepVerifier(exact), root, keccak256(TYPES), SCALE);
    }

    function _pinned(bool exact) internal {
        Pin memory pin = _pin(exact);
        vm.prank(submitter);
        vm.assertEq(provenSteps.pin(0, _terms(), pin), id);
    }

    /// @dev Honest proofs of `count` steps.
    function _proofs(uint256 step, uint256 count) internal view returns (StepProof[] memory steps) {
        steps = new StepProof[](count);
        for (uint256 i = 0; i < count; ++i) {
            steps[i] = _proof(step + i);
        }
    }

    function _proof(uint256 step) internal view returns (StepProof memory given) {
        bytes32[] memory entries = _batches();
        given.data = _data(step);
        given.path = NaiveLog.inclusionPath(entries, step, 0, entries.length);
        given.afterStep = _vector(step + 1);
        bytes32[] memory hashes = new bytes32[](4);
        (hashes[0], hashes[1], hashes[2], hashes[3]) = (_vector(step), given.data[0], given.data[1], given.afterStep);
        given.proof = abi.encode(provenSteps.contextOf(id, uint64(step)), hashes);
    }

    function _prove(uint32 segment) internal {
        uint256 step = INTERVAL * segment;
        (StepProof[] memory steps, bytes32 first) = (_proofs(step, INTERVAL), _vector(step));
        provenSteps.prove(id, segment, first, 0, steps);
    }

    function _tie(uint256 step) internal {
        provenSteps.tie(id, TYPES, _words(step));
    }
}
