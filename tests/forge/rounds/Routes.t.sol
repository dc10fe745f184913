// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";
import {SignedText} from "../../../contracts/rounds/SignedText.sol";
import {Base} from "../Base.sol";

/// @notice Routes and members are found 32 bytes at a time: where they end among them, and what stands around, doesn't
/// matter.
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

    /// @dev Roles are made of what stands at the ends of members.
    function testFuzz_members_are_found_whatever_they_are_named(uint256 seed) public view {
        string[10] memory pieces = ["}", ",", "{", "]", "\\\"", "j", "p", "\\\\", "}],\\\"p", "},{\\\"j"];
        uint256 count = 1 + seed % 5;
        bytes memory text = "\"members\":[";
        for (uint256 i = 0; i < count; ++i) {
            text = abi.encodePacked(text, i == 0 ? "" : ",", "{\"joined\":0,\"role\":\"");
            for (seed = uint256(keccak256(abi.encode(seed, i))) >> seed % 256; seed != 0; seed /= 10) {
                text = abi.encodePacked(text, pieces[seed % 10]);
            }
            seed = uint256(keccak256(text));
            string memory worker = Strings.toHexString(address(uint160(i + 1)));
            text = abi.encodePacked(text, "\",\"seat\":0,\"weight\":1,\"worker\":\"", worker, "\"}");
        }
        text = abi.encodePacked(text, "],\"partners\":[]}");
        for (uint256 i = 0; i < count; ++i) {
            vm.assertEq(this.placeOf(text, address(uint160(i + 1))), i);
        }
        vm.assertEq(this.placeOf(text, address(uint160(count + 1))), type(uint256).max);
    }

    function placeOf(bytes calldata text, address worker) external pure returns (uint256) {
        return SignedText.placeOf(text, 0, worker);
    }

    function routeOf(bytes calldata text, uint256 offset, uint256 part, uint256 place) external pure returns (uint256) {
        return SignedText.routeOf(text, offset, part, place);
    }

    function _isNone(bytes memory text, uint256 offset, uint256 part, uint256 place) private {
        vm.expectPartialRevert(SignedText.OtherText.selector);
        this.routeOf(text, offset, part, place);
    }
}
