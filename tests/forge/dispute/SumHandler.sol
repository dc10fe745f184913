// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {KIND_DISTANCE, KIND_REFERENCE} from "../../../contracts/dispute/DisputeKinds.sol";
import {GameHandler} from "./GameHandler.sol";
import {Distance, StartParams} from "./GameTest.sol";

/// @notice Disputes about the distance between the states before and after two steps. Openings show two parts, so that
/// three slots take two of them.
contract SumHandler is GameHandler {
    function _width() internal pure override returns (uint8) {
        return 1;
    }

    function _open(uint256 dice) internal override {
        uint256 slot = dice % 3;
        // The state after the steps is what they yield, but for some words of any bits: numbers, infinities and NaN.
        _advance(_key(0, STEP));
        uint32[] storage words = states[FIRST_STEP + 2][slot];
        for (uint256 i = 0; i < (dice >> 8) % 3; i++) {
            words[(dice >> (16 + 8 * i)) % words.length] = uint32(dice >> (32 + 32 * i));
        }
        for (uint256 version = 0; version < 2; version++) {
            delete slotSums[version];
            delete leafSums[version];
        }
        uint8 component = slot == 0 ? 1 : slot == 1 ? 3 : 2;
        _sum(component);
        _sumLeaves(slot);
        _lieAbout(slot, dice >> 128);
        StartParams memory s = _distance(component);
        s.kind = dice & (1 << 120) == 0 ? KIND_DISTANCE : KIND_REFERENCE;
        _start(s);
    }

    /// @dev About one leaf of the slot, or all, or about a slot that does not count.
    function _lieAbout(uint256 slot, uint256 dice) private {
        uint256 truth = slotSums[0][slot];
        if (dice % 8 == 0 && truth != Distance.INFINITE) {
            slotSums[1][(slot + 1 + (dice >> 3) % 2) % 3] = 1 + (dice >> 8);
            return;
        }
        uint256[] storage sums = leafSums[1];
        for (uint256 i = 0; i < sums.length; i++) {
            if (dice % 4 == 1 || (dice >> 3) % sums.length == i) sums[i] = _false(sums[i], dice >> 8);
        }
        slotSums[1][slot] = _total(sums);
        if (slotSums[1][slot] != truth) return;
        // Two lies that make up for each other, or one beside an infinite leaf: nobody would disagree.
        for (uint256 i = 0; i < sums.length; i++) {
            sums[i] = truth == Distance.INFINITE ? i : sums[i] + 1;
        }
        slotSums[1][slot] = _total(sums);
    }

    /// @dev Infinite, too large for a sum, a little too much, or as good as nothing.
    function _false(uint256 truth, uint256 dice) private pure returns (uint256) {
        if (dice % 4 == 0) return Distance.INFINITE;
        if (dice % 4 == 1) return Distance.INFINITE - 1 - (dice >> 2);
        if (dice % 4 == 2 && truth < 2 ** 190) return truth + 1 + (dice >> 2) % 2 ** 60;
        return truth < 2 ? 2 : 1;
    }

    function _total(uint256[] storage sums) private view returns (uint256 total) {
        for (uint256 i = 0; i < sums.length; i++) {
            total = Distance.add(total, sums[i]);
        }
    }
}
