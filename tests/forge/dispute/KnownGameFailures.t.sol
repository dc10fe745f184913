// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {GameTest, Level} from "./GameTest.sol";

/// @notice What has broken other dispute games, played against this one; the others of docs/audit.md, Known failures,
/// are named there.
contract KnownGameFailuresTest is GameTest {
    /// @dev The state between two steps is a convenient one, from which the second step is executed right: whoever
    /// disputes points alone may find nothing wrong below it. Here both sides stand by what led to it.
    function _poison(uint256 slot, bool asserterLies) private {
        setUp();
        uint32[] storage words = states[_key(1, STEP)][slot];
        words[words.length - 1] ^= 0x400000;
        _execute(_key(1, STEP));
        _advance(_key(1, STEP));
        _cast(asserterLies);
        _start(_replay(2));
        _finish(asserterLies);
        vm.assertEq(facts.step, FIRST_STEP);
        vm.assertTrue(p.level == Level.STATE);
    }

    function test_attack_a_poisoned_state_before_the_disputed_step() public {
        for (uint256 slot = 0; slot < 3; slot++) {
            _poison(slot, true);
            _poison(slot, false);
        }
    }

    /// @dev A dispute ends in one call that costs the same however long it was.
    function test_attack_a_resolution_that_grows_with_the_dispute() public {
        uint256[2] memory gas;
        for (uint256 i = 0; i < 2; i++) {
            setUp();
            outputs[_key(1, STEP)][5][0] ^= 1;
            states[_key(1, STEP + 1)][0][0] ^= 1;
            _cast(true);
            _start(_replay(2));
            for (uint256 moves = 0; moves < 4 * i; moves++) {
                _move();
            }
            vm.warp(game.deadline(number));
            vm.cool(address(game));
            vm.cool(address(resolver));
            uint256 before = gasleft();
            game.timeout(number);
            gas[i] = before - gasleft();
        }
        vm.assertLt(gas[1], gas[0] + 500);
        vm.assertLt(gas[0], 100_000);
    }
}
