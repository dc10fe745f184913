// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {G1Point} from "../../../contracts/market/Quicknet.sol";
import {Base} from "../Base.sol";

/// @notice The published rounds of quicknet in fixtures/vectors/drand.json.
abstract contract Drand is Base {
    string private constant FILE = "fixtures/vectors/drand.json";

    function publishedRounds() internal view returns (uint64[] memory numbers) {
        string[] memory found = vm.parseJsonKeys(vm.readFile(FILE), ".networks.quicknet.rounds");
        numbers = new uint64[](found.length);
        for (uint256 i = 0; i < found.length; ++i) {
            numbers[i] = uint64(vm.parseUint(found[i]));
        }
    }

    function signatureOf(uint64 round) internal view returns (G1Point memory) {
        bytes memory point = vm.parseBytes(string.concat("0x", _field(round, "point")));
        bytes memory words = bytes.concat(bytes16(0), _slice(point, 0), bytes16(0), _slice(point, 48));
        return abi.decode(words, (G1Point));
    }

    function randomnessOf(uint64 round) internal view returns (bytes32) {
        return bytes32(vm.parseBytes(string.concat("0x", _field(round, "randomness"))));
    }

    function _field(uint64 round, string memory name) private view returns (string memory) {
        string memory path = string.concat('.networks.quicknet.rounds["', vm.toString(round), '"].');
        return vm.parseJsonString(vm.readFile(FILE), string.concat(path, name));
    }

    function _slice(bytes memory data, uint256 start) private pure returns (bytes memory part) {
        part = new bytes(48);
        for (uint256 i = 0; i < 48; ++i) {
            part[i] = data[start + i];
        }
    }
}
