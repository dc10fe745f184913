// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Split} from "../../../contracts/market/Split.sol";
import {Base} from "../Base.sol";

/// @notice Bonds and rewards of objections are what `pol.incentives.payouts` computes.
contract ObjectionVectorsTest is Base {
    string private _json;

    function test_amounts() public {
        _json = vm.readFile("fixtures/vectors/objections.json");
        uint256[] memory stakes = _column("stake");
        uint256[] memory bonds = _column("bond");
        uint256[] memory rewards = _column("reward");
        uint256[] memory defenses = _defenses();
        uint256[] memory left = _left(stakes);
        uint256[] memory earlier = _column("earlier");
        uint256[] memory taxes = _column("tax");
        vm.assertGt(stakes.length, 0);
        for (uint256 i = 0; i < stakes.length; ++i) {
            vm.assertEq(Split.objectionBond(2 * defenses[i], left[i], earlier[i]), bonds[i]);
            vm.assertEq(Split.objectorReward(left[i], bonds[i], taxes[i]), rewards[i]);
        }
    }

    function _defenses() private view returns (uint256[] memory defenses) {
        uint256[] memory prices = _column("price");
        uint256[] memory segments = _column("segments");
        uint256[] memory fees = _column("fee");
        uint256[] memory draws = _column("draws");
        uint256[] memory expected = _column("segment");
        defenses = _column("extra");
        for (uint256 i = 0; i < prices.length; ++i) {
            uint256 segment =
                Split.segmentPrice(uint128(prices[i]), uint64(segments[i]), uint128(fees[i]), uint32(draws[i]));
            vm.assertEq(segment, expected[i]);
            defenses[i] += segment;
        }
    }

    function _left(uint256[] memory stakes) private view returns (uint256[] memory left) {
        uint256[] memory fees = _column("fee");
        uint256[] memory looks = _column("looks");
        uint256[] memory draws = _column("draws");
        left = _column("left");
        for (uint256 i = 0; i < left.length; ++i) {
            uint256 rest = Split.slashable(uint128(stakes[i]), uint128(fees[i]), uint32(looks[i]), uint32(draws[i]));
            vm.assertEq(rest, left[i]);
        }
    }

    function _column(string memory name) private view returns (uint256[] memory) {
        return vm.parseJsonUintArray(_json, string.concat(".", name));
    }
}
