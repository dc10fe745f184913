// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Level} from "../../../contracts/dispute/Position.sol";
import {GameTest} from "./GameTest.sol";

/// @notice Whole games: whoever says what is true wins, as the asserter and as the challenger.
contract DisputeGameTest is GameTest {
    function _lieAbout(uint256 node, uint256 element, bool asserterLies) private {
        outputs[_key(1, STEP)][node][element] ^= 1;
        _advance(_key(1, STEP));
        _cast(asserterLies);
        // What follows from the last node is no part of the state.
        if (node == 0 || node == 1 || node == 5) states[_key(1, STEP + 1)][0][0] ^= 1;
        _start(_replay(2));
        _finish(asserterLies);
    }

    function test_gather() public {
        _lieAbout(0, 1, true);
    }

    function test_gather_challenged_for_nothing() public {
        _lieAbout(0, 1, false);
    }

    function test_fold() public {
        _lieAbout(1, 0, true);
    }

    function test_fold_challenged_for_nothing() public {
        _lieAbout(1, 0, false);
    }

    function test_body() public {
        _lieAbout(2, 1, true);
    }

    function test_body_challenged_for_nothing() public {
        _lieAbout(2, 1, false);
    }

    function test_body_of_a_fold() public {
        _lieAbout(5, 0, true);
    }

    function test_body_of_a_fold_challenged_for_nothing() public {
        _lieAbout(5, 0, false);
    }

    function test_second_leaf() public {
        _lieAbout(3, 64, true);
    }

    function test_second_leaf_challenged_for_nothing() public {
        _lieAbout(3, 64, false);
    }

    function test_read_past_the_bound() public {
        _lieAbout(3, 65, true);
    }

    function test_read_past_the_bound_challenged_for_nothing() public {
        _lieAbout(3, 65, false);
    }

    function test_coordinate_is_the_step() public {
        _lieAbout(4, 0, true);
    }

    function test_coordinate_is_the_step_challenged_for_nothing() public {
        _lieAbout(4, 0, false);
    }

    /// @dev More steps than parts: a range of steps is answered with ranges. Five levels are opened as three and two.
    function test_twenty_steps() public {
        for (uint256 i = 0; i < 2; i++) {
            setUp();
            for (uint256 version = 0; version < 2; version++) {
                for (uint256 step = FIRST_STEP + 2; step < FIRST_STEP + 20; step++) {
                    _execute(_key(version, step));
                    _advance(_key(version, step));
                }
            }
            for (uint256 step = FIRST_STEP + 9; step < FIRST_STEP + 20; step++) {
                outputs[_key(1, step)][4][0] ^= 0x8000;
                _advance(_key(1, step));
            }
            _cast(i == 0);
            _start(_replay(20));
            vm.assertEq(p.opened.length, 8 * 32);
            _finish(i == 0);
            vm.assertEq(facts.step, FIRST_STEP + 9);
        }
    }

    function test_one_step() public {
        outputs[_key(1, FIRST_STEP)][4][0] ^= 1;
        _advance(_key(1, FIRST_STEP));
        _cast(true);
        _start(_replay(1));
        vm.assertEq(p.opened.length, 32);
        _finish(true);
    }

    function _lieAboutState(uint256 slot, bool asserterLies) private {
        states[_key(1, FIRST_STEP + 2)][slot][0] ^= 1;
        _cast(asserterLies);
        _start(_replay(2));
        _finish(asserterLies);
        vm.assertTrue(p.level == Level.STATE);
    }

    /// @dev The liar executes honestly and claims a state that its own trace does not yield.
    function test_slot_under_a_right_trace() public {
        for (uint256 slot = 0; slot < 3; slot++) {
            setUp();
            _lieAboutState(slot, true);
            setUp();
            _lieAboutState(slot, false);
        }
    }

    function _lieAboutSum(uint8 component, uint256 slot, bool asserterLies) private {
        _sum(component);
        _sumLeaves(slot);
        slotSums[1][slot] += 1;
        leafSums[1][leafSums[1].length - 1] += 1;
        _cast(asserterLies);
        _start(_distance(component));
        _finish(asserterLies);
    }

    function test_sum_of_one_leaf() public {
        _lieAboutSum(1, 0, true);
    }

    function test_sum_of_one_leaf_challenged_for_nothing() public {
        _lieAboutSum(1, 0, false);
    }

    function test_sum_of_two_leaves() public {
        _lieAboutSum(3, 1, true);
    }

    function test_sum_of_two_leaves_challenged_for_nothing() public {
        _lieAboutSum(3, 1, false);
    }

    function test_sum_counts_an_integer() public {
        _lieAboutSum(2, 2, true);
        vm.assertEq(slotSums[0][2], 2 ** 160);
    }

    /// @dev A slot of another component has no distance: nothing is left to be shown.
    function test_sum_of_another_component() public {
        for (uint256 i = 0; i < 2; i++) {
            setUp();
            delete slotSums[0];
            delete slotSums[1];
            _sum(1);
            slotSums[1][1] = 9;
            _cast(i == 0);
            _start(_distance(1));
            _finish(i == 0);
        }
    }

    /// @dev A number without a distance is infinitely far from every other, and an infinite part makes an infinite sum.
    function test_sum_may_be_infinite() public {
        states[FIRST_STEP + 2][0][1] = 0x7fc00000;
        _sum(1);
        _sumLeaves(0);
        vm.assertEq(slotSums[0][0], type(uint256).max);
        (slotSums[1][0], leafSums[1][0]) = (7, 7);
        _cast(false);
        _start(_distance(1));
        vm.assertEq(params.sum, type(uint256).max);
        _finish(false);
    }
}
