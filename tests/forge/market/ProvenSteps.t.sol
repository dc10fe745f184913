// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Chain, IProvenSteps, Pin, StepProof} from "../../../contracts/market/IProvenSteps.sol";
import {Terms} from "../../../contracts/market/TaskTypes.sol";
import {IStepVerifier, ProvenBase, VectorState} from "./ProvenBase.sol";

/// @notice What a task's proofs are, which steps they cover, and which states their vectors are.
contract ProvenStepsTest is ProvenBase {
    function test_a_pin_is_for_the_task_that_its_submitter_will_make() public {
        Pin memory pin = _pin(true);
        vm.expectEmit(address(provenSteps));
        emit IProvenSteps.Pinned(id, submitter, pin);
        vm.prank(submitter);
        vm.assertEq(provenSteps.pin(0, _terms(), pin), id);
        vm.assertEq(abi.encode(provenSteps.pinned(id)), abi.encode(pin));
    }

    function test_nobody_pins_for_another() public {
        _pinned(true);
        Pin memory before = provenSteps.pinned(id);
        (Pin memory other, Terms memory terms) = (_pin(true), _terms());
        vm.prank(solver);
        vm.assertNotEq(provenSteps.pin(0, terms, other), id);
        vm.assertEq(abi.encode(provenSteps.pinned(id)), abi.encode(before));
    }

    function test_a_pin_may_change_until_the_task_exists() public {
        _pinned(true);
        _pinned(false);
        Pin memory last = provenSteps.pinned(id);
        vm.assertFalse(last.verifier.exact());
        Terms memory terms = _terms();
        _submit();
        _expectRefusal(submitter, abi.encodeWithSelector(IProvenSteps.TaskExists.selector, id));
        provenSteps.pin(0, terms, last);
    }

    function test_a_pin_has_all_its_parts() public {
        Pin[3] memory wrong = [_pin(true), _pin(true), _pin(true)];
        wrong[0].verifier = IStepVerifier(submitter);
        (wrong[1].batches, wrong[2].layout) = (0, 0);
        Terms memory terms = _terms();
        for (uint256 i = 0; i < 3; ++i) {
            _expectRefusal(submitter, IProvenSteps.InvalidPin.selector);
            provenSteps.pin(0, terms, wrong[i]);
        }
    }

    function test_without_a_pin_there_are_no_proofs() public {
        _submit();
        bytes memory notPinned = abi.encodeWithSelector(IProvenSteps.NotPinned.selector, id);
        vm.expectRevert(notPinned);
        provenSteps.prove(id, 0, "first", 0, new StepProof[](0));
        vm.expectRevert(notPinned);
        provenSteps.tie(id, TYPES, hex"00000000");
        vm.expectRevert(notPinned);
        provenSteps.leadsTo(id, 0, 0, 0, 0);
    }

    function test_steps_are_proved_in_any_portions() public {
        _pinned(true);
        _submit();
        bytes32 first = _vector(10);
        uint32 done = 0;
        uint8[4] memory portions = [3, 0, 1, 6];
        for (uint256 i = 0; i < portions.length; ++i) {
            StepProof[] memory steps = _proofs(10 + done, portions[i]);
            if (portions[i] != 0) {
                vm.expectEmit(address(provenSteps));
                emit IProvenSteps.StepProven(id, uint64(10 + done), _vector(10 + done), _vector(11 + done));
            }
            provenSteps.prove(id, 1, first, done, steps);
            done += portions[i];
            Chain memory chain = provenSteps.chain(id, 1, first);
            vm.assertEq(chain.steps, done);
            vm.assertEq(chain.last, _vector(10 + done));
        }
    }

    /// @dev Whoever begins elsewhere has a chain of its own, which leads nowhere.
    function test_chains_of_other_beginnings_are_others() public {
        _pinned(true);
        _submit();
        provenSteps.prove(id, 0, _vector(0), 0, _proofs(0, 2));
        provenSteps.prove(id, 0, "elsewhere", 0, new StepProof[](0));
        vm.assertEq(provenSteps.chain(id, 0, "elsewhere").steps, 0);
        vm.assertEq(provenSteps.chain(id, 0, _vector(0)).steps, 2);
        _expectRefused(0, "elsewhere", _proof(0), abi.encodeWithSelector(IProvenSteps.InvalidProof.selector, uint64(0)));
    }

    function test_steps_that_there_are_not() public {
        _pinned(true);
        StepProof[] memory none = new StepProof[](0);
        bytes32 first = _vector(0);
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.NoSuchStep.selector, uint64(0)));
        provenSteps.prove(id, 0, first, 0, none);
        _submit();
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.NoSuchStep.selector, uint64(40)));
        provenSteps.prove(id, 4, first, 0, none);
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.NoSuchStep.selector, uint64(42_949_672_950)));
        provenSteps.prove(id, type(uint32).max, first, 0, none);
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.NoSuchStep.selector, uint64(0)));
        provenSteps.prove(id, 0, 0, 0, none);
        _prove(0);
        _expectRefused(0, first, _proof(10), abi.encodeWithSelector(IProvenSteps.NoSuchStep.selector, uint64(10)));
    }

    function test_no_proof_of_another_step_task_or_vector() public {
        _pinned(true);
        _submit();
        bytes32 first = _vector(0);
        bytes memory wrongData = abi.encodeWithSelector(IProvenSteps.WrongData.selector, uint64(0));
        bytes memory invalid = abi.encodeWithSelector(IProvenSteps.InvalidProof.selector, uint64(0));
        _expectRefused(0, first, _proof(1), wrongData);
        StepProof memory given = _proof(0);
        (given.data[0], given.data[1]) = (given.data[1], given.data[0]);
        _expectRefused(0, first, given, wrongData);
        given = _proof(0);
        given.data = new bytes32[](0);
        _expectRefused(0, first, given, wrongData);
        given = _proof(0);
        given.path[0] = 0;
        _expectRefused(0, first, given, wrongData);
        given = _proof(0);
        given.afterStep = _vector(2);
        _expectRefused(0, first, given, invalid);
        given = _proof(0);
        given.proof = _proof(1).proof;
        _expectRefused(0, first, given, invalid);
        // The same step of another task.
        given = _proof(0);
        (bytes32 context, bytes32[] memory hashes) = abi.decode(given.proof, (bytes32, bytes32[]));
        vm.assertEq(context, keccak256(abi.encode(id, uint64(0))));
        given.proof = abi.encode(provenSteps.contextOf("another", 0), hashes);
        _expectRefused(0, first, given, invalid);
    }

    /// @dev One that isn't the next spoils all that came with it.
    function test_all_or_none() public {
        _pinned(true);
        _submit();
        StepProof[] memory steps = _proofs(0, 5);
        steps[3] = steps[2];
        bytes32 first = _vector(0);
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.WrongData.selector, uint64(3)));
        provenSteps.prove(id, 0, first, 0, steps);
        vm.assertEq(provenSteps.chain(id, 0, first).steps, 0);
    }

    /// @dev A stranger proves the next step, or all of them, before a batch lands: what is left of the batch is proven.
    function test_attack_a_batch_that_a_stranger_overtakes() public {
        _pinned(true);
        _submit();
        bytes32 first = _vector(0);
        for (uint32 step = 0; step < INTERVAL; step += 5) {
            StepProof[] memory batch = _proofs(step, 5);
            provenSteps.prove(id, 0, first, step, _proofs(step, step == 0 ? 1 : 5));
            provenSteps.prove(id, 0, first, step, batch);
            vm.assertEq(provenSteps.chain(id, 0, first).steps, step + 5);
        }
        vm.assertEq(provenSteps.chain(id, 0, first).last, _vector(INTERVAL));
        // Nobody leaves a step out.
        StepProof[] memory second = _proofs(11, 1);
        first = _vector(10);
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.NoSuchStep.selector, uint64(11)));
        provenSteps.prove(id, 1, first, 1, second);
    }

    function test_a_tie_is_of_one_state_and_one_vector() public {
        _pinned(true);
        (bytes32 root, bytes32 vector) = (log[1], _vector(10));
        vm.expectEmit(address(provenSteps));
        emit IProvenSteps.Tied(id, root, vector);
        provenSteps.tie(id, TYPES, _words(10));
        vm.assertEq(provenSteps.tied(id, root), vector);
        vm.assertEq(provenSteps.tied("another", root), 0);
        bytes memory square = abi.encodePacked(uint8(1), uint8(2), uint32(1), uint32(1));
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.WrongLayout.selector, keccak256(square)));
        provenSteps.tie(id, square, _words(10));
        vm.expectRevert(abi.encodeWithSelector(VectorState.WrongSize.selector, uint256(8), uint256(4)));
        provenSteps.tie(id, TYPES, hex"0000803f0000803f");
        vm.expectRevert(abi.encodeWithSelector(VectorState.NotFixedPoint.selector, uint256(0)));
        provenSteps.tie(id, TYPES, hex"01000034");
    }

    function test_a_segment_leads_where_all_its_steps_lead() public {
        _pinned(true);
        _submit();
        (bytes32 start, bytes32 end) = (log[2], log[3]);
        _expectNotProven(start, end, end);
        provenSteps.prove(id, 2, _vector(20), 0, _proofs(20, 9));
        _tie(20);
        _tie(29);
        _tie(30);
        _expectNotProven(start, _state(29), _state(29));
        provenSteps.prove(id, 2, _vector(20), 9, _proofs(29, 1));
        vm.assertTrue(provenSteps.leadsTo(id, 2, start, end, end));
        vm.assertFalse(provenSteps.leadsTo(id, 2, start, "another", end));
        _expectNotProven(start, "another", "another");
        _expectNotProven(start, end, start);
        _expectNotProven("another", end, end);
        _expectNotProven(0, end, end);
        // Of another segment, there is nothing.
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.NotProven.selector, id, uint32(1)));
        provenSteps.leadsTo(id, 1, start, end, end);
    }

    function test_states_that_are_not_tied_decide_nothing() public {
        _pinned(true);
        _submit();
        _prove(2);
        _expectNotProven(log[2], log[3], log[3]);
        _tie(30);
        _expectNotProven(log[2], log[3], log[3]);
        _tie(20);
        vm.assertTrue(provenSteps.leadsTo(id, 2, log[2], log[3], log[3]));
    }

    /// @dev A prover that may choose a rounding proves a bound, not a result.
    function test_inexact_proofs_decide_nothing() public {
        _pinned(false);
        _submit();
        _prove(2);
        _tie(20);
        _tie(30);
        vm.assertEq(provenSteps.chain(id, 2, _vector(20)).steps, INTERVAL);
        _expectNotProven(log[2], log[3], log[3]);
    }

    function _expectRefused(uint32 segment, bytes32 first, StepProof memory given, bytes memory reason) private {
        StepProof[] memory steps = new StepProof[](1);
        steps[0] = given;
        uint32 from = provenSteps.chain(id, segment, first).steps;
        vm.expectRevert(reason);
        provenSteps.prove(id, segment, first, from, steps);
    }

    function _expectNotProven(bytes32 start, bytes32 end, bytes32 shown) private {
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.NotProven.selector, id, uint32(2)));
        provenSteps.leadsTo(id, 2, start, end, shown);
    }
}
