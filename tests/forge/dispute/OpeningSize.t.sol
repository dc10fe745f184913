// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {OpeningSize} from "../../../contracts/dispute/OpeningSize.sol";
import {Base} from "../Base.sol";

/// @notice How much an opening shows, against the specification's own words, and how many openings there can be: what
/// `longest` counts.
contract OpeningSizeTest is Base {
    uint256 private constant WIDEST = 6;
    uint256 private constant DEEPEST = 64;

    function _ceil(uint256 a, uint256 b) private pure returns (uint256) {
        return a / b + (a % b == 0 ? 0 : 1);
    }

    function _depth(uint256 size) private pure returns (uint256 depth) {
        while (2 ** depth < size) depth++;
    }

    function test_shares_of_all_heights() public pure {
        for (uint256 width = 1; width <= WIDEST; width++) {
            vm.assertEq(OpeningSize.of_(0, width), 0);
            vm.assertEq(OpeningSize.openings(0, width), 0);
            for (uint256 height = 1; height <= DEEPEST; height++) {
                vm.assertEq(OpeningSize.openings(height, width), _ceil(height, width));
                vm.assertEq(OpeningSize.of_(height, width), _ceil(height, _ceil(height, width)));
            }
        }
    }

    function test_table() public pure {
        for (uint256 width = 1; width < WIDEST; width++) {
            uint256 table = OpeningSize.table(width);
            for (uint256 height = 0; height <= OpeningSize.MAX_HEIGHT; height++) {
                vm.assertEq(OpeningSize.shareOf(table, height), OpeningSize.of_(height, width));
            }
        }
        vm.assertEq(OpeningSize.MAX_HEIGHT, 31);
    }

    /// @dev A subtree that is answered until nothing is left: as many positions as `longest` counts.
    function test_a_subtree_takes_as_many_openings_as_counted() public pure {
        for (uint256 width = 1; width <= WIDEST; width++) {
            for (uint256 height = 0; height <= DEEPEST; height++) {
                uint256 positions = 0;
                for (uint256 left = height; left > 0; positions++) {
                    uint256 share = OpeningSize.of_(left, width);
                    vm.assertTrue(share > 0 && share <= width);
                    left -= share;
                }
                vm.assertEq(positions, OpeningSize.openings(height, width));
            }
        }
    }

    /// @dev A range that is answered until one is left, whichever part is picked: never more positions than `longest`
    /// counts.
    function testFuzz_a_range_takes_no_more_openings_than_counted(uint64 size, uint256 width, uint256 dice)
        public
        pure
    {
        width = bound(width, 1, WIDEST);
        uint256 length = uint256(size) + 1;
        uint256 most = OpeningSize.openings(_depth(length), width);
        uint256 positions = 0;
        for (; length > 1; positions++) {
            uint256 parts = OpeningSize.parts(length, width);
            vm.assertTrue(parts > 1 && parts <= length && parts <= 2 ** width);
            dice = uint256(keccak256(abi.encode(dice)));
            uint256 part = dice % parts;
            length = (part + 1) * length / parts - part * length / parts;
            vm.assertGt(length, 0);
        }
        vm.assertLe(positions, most);
    }

    function testFuzz_parts(uint64 size, uint256 width) public pure {
        width = bound(width, 1, WIDEST);
        size = size >> (size % 64);
        if (size == 0) size = 1;
        uint256 most = 2 ** OpeningSize.of_(_depth(size), width);
        vm.assertEq(OpeningSize.parts(size, width), most < size ? most : size);
    }

    function test_parts_of_small_ranges() public pure {
        vm.assertEq(OpeningSize.parts(1, 4), 1);
        vm.assertEq(OpeningSize.parts(3, 4), 3);
        vm.assertEq(OpeningSize.parts(16, 4), 16);
        vm.assertEq(OpeningSize.parts(17, 4), 8);
        vm.assertEq(OpeningSize.parts(33, 5), 8);
    }

    /// @dev Counted one by one.
    function testFuzz_existing(uint256 lo, uint256 leaves, uint256 height, uint256 most) public pure {
        leaves = bound(leaves, 1, 400);
        lo = bound(lo, 0, leaves - 1);
        height = bound(height, 0, 9);
        most = bound(most, 1, 32);
        uint256 count = 0;
        for (uint256 leaf = lo; leaf < leaves && count < most; leaf += 2 ** height) {
            count++;
        }
        vm.assertEq(OpeningSize.existing(lo, leaves, height, most), count);
    }
}
