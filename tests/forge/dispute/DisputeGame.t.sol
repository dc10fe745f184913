// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {GameTest} from "./GameTest.sol";

/// @notice Whole games: whoever says what is true wins, as the asserter and as the challenger.
contract DisputeGameTest is GameTest {
    /// @dev A lie about one word of one node of a step, of the asserter or of the challenger.
    function lieAbout(uint256 node, uint256 element, bool asserterLies) external {
        outputs[_key(1, STEP)][node][element] ^= 1;
        _advance(_key(1, STEP));
        _cast(asserterLies);
        // What follows from the last node is no part of the state.
        if (node == 0 || node == 1 || node == 5) states[_key(1, STEP + 1)][0][0] ^= 1;
        _start(_replay(2));
        _finish(asserterLies);
    }

    function _lieOfEither(string memory name, uint256 node, uint256 element) private {
        _row(name, abi.encodeCall(this.lieAbout, (node, element, true)));
        _row(string.concat(name, ", challenged for nothing"), abi.encodeCall(this.lieAbout, (node, element, false)));
    }

    function test_lies_about_words_of_a_step() public {
        _lieOfEither("gather", 0, 1);
        _lieOfEither("fold", 1, 0);
        _lieOfEither("body", 2, 1);
        _lieOfEither("body of a fold", 5, 0);
        _lieOfEither("second leaf", 3, 64);
        _lieOfEither("read past the bound", 3, 65);
        _lieOfEither("coordinate that is the step", 4, 0);
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

    function lieAboutSum(uint8 component, uint256 slot, bool asserterLies) external {
        _sum(component);
        // A slot of another component has no distance: nothing is left to be shown.
        bool counts = component == [1, 3, 2][slot];
        slotSums[1][slot] += counts ? 1 : 9;
        if (counts) {
            _sumLeaves(slot);
            leafSums[1][leafSums[1].length - 1] += 1;
        }
        _cast(asserterLies);
        _start(_distance(component));
        _finish(asserterLies);
        if (component == 2) vm.assertEq(slotSums[0][2], 2 ** 160);
    }

    function test_lies_about_sums() public {
        string[4] memory names = ["one leaf", "two leaves", "an integer", "another component"];
        uint8[2][4] memory rows = [[1, 0], [3, 1], [2, 2], [1, 1]];
        for (uint256 i = 0; i < 8; i++) {
            _row(names[i / 2], abi.encodeCall(this.lieAboutSum, (rows[i / 2][0], rows[i / 2][1], i % 2 == 0)));
        }
    }
}
