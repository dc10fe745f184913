// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {SignedText} from "../../../contracts/rounds/SignedText.sol";
import {Base} from "../Base.sol";

/// @notice Routes are found 32 bytes at a time: where a list ends among them, and what stands around, doesn't matter.
contract RoutesTest is Base {
    function testFuzz_a_route_is_read_where_it_stands(uint256 seed) public {
        uint256 parts = 1 + seed % 60;
        uint256[] memory first = new uint256[](parts);
        bytes memory before = abi.encodePacked("{\"partners\":[1,0],", new bytes(seed >> 8 & 31));
        bytes memory text = abi.encodePacked(before, "\"routes\":[[");
        for (uint256 part = 0; part < parts; ++part) {
            seed = uint256(keccak256(abi.encode(seed)));
            first[part] = seed >> (256 - seed % 64);
            text = abi.encodePacked(text, part == 0 ? "" : "],[", vm.toString(first[part]), ",", vm.toString(part));
        }
        text = abi.encodePacked(text, "]],\"version\":1}");
        for (uint256 part = 0; part < parts; ++part) {
            vm.assertEq(this.routeOf(text, before.length, part, 0), first[part]);
            vm.assertEq(this.routeOf(text, before.length, part, 1), part);
            _isNone(text, before.length, part, 2);
        }
        for (uint256 part = parts; part < parts + 3; ++part) {
            _isNone(text, before.length, part, 0);
        }
        _isNone(text, before.length, type(uint256).max, 0);
    }

    function routeOf(bytes calldata text, uint256 offset, uint256 part, uint256 place) external pure returns (uint256) {
        return SignedText.routeOf(text, offset, part, place);
    }

    function _isNone(bytes memory text, uint256 offset, uint256 part, uint256 place) private {
        vm.expectPartialRevert(SignedText.OtherText.selector);
        this.routeOf(text, offset, part, place);
    }
}
