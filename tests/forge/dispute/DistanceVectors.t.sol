// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LEAF_BYTES} from "../../../contracts/commitments/MerkleBranch.sol";
import {Distance} from "../../../contracts/dispute/Distance.sol";
import {Base} from "../Base.sol";

contract DistanceHarness {
    function add(uint256 a, uint256 b) external pure returns (uint256) {
        return Distance.add(a, b);
    }

    function ofLeaves(bytes calldata x, bytes calldata y, uint256 words, uint256 dtype, uint256 scale)
        external
        pure
        returns (uint256)
    {
        return Distance.ofLeaves(x, y, words, dtype, scale);
    }
}

/// @notice The cheatcode that reads records; a type description names the keys and orders the fields.
interface IJsonRecords {
    function parseJsonTypeArray(string calldata json, string calldata key, string calldata typeDescription)
        external
        pure
        returns (bytes memory);
}

/// @notice Distances of docs/spec/verdict.md, computed by tests/verification/test_distance_vectors.py.
contract DistanceVectorsTest is Base {
    struct WordCase {
        uint8 dtype;
        uint8 scale;
        uint32 x;
        uint32 y;
        uint256 distance;
    }

    struct Leaves {
        string name;
        uint8 dtype;
        uint8 scale;
        uint8 words;
        bytes x;
        bytes y;
        uint256 sum;
    }

    struct Sum {
        uint256[] parts;
        uint256 sum;
    }

    IJsonRecords private constant TYPES = IJsonRecords(address(vm));

    DistanceHarness private harness = new DistanceHarness();
    string private json;

    function setUp() public {
        json = vm.readFile("fixtures/vectors/distances.json");
    }

    function test_words() public view {
        WordCase[] memory pairs = abi.decode(
            TYPES.parseJsonTypeArray(
                json, ".words", "WordCase(uint8 dtype,uint8 scale,uint32 x,uint32 y,uint256 distance)"
            ),
            (WordCase[])
        );
        vm.assertGt(pairs.length, 150);
        for (uint256 i = 0; i < pairs.length; ++i) {
            WordCase memory pair = pairs[i];
            vm.assertEq(Distance.ofWords(pair.x, pair.y, pair.dtype, pair.scale), pair.distance);
            vm.assertEq(Distance.ofWords(pair.y, pair.x, pair.dtype, pair.scale), pair.distance);
        }
    }

    function test_leaves() public view {
        Leaves[] memory pairs = abi.decode(
            TYPES.parseJsonTypeArray(
                json, ".leaves", "Leaves(string name,uint8 dtype,uint8 scale,uint8 words,bytes x,bytes y,uint256 sum)"
            ),
            (Leaves[])
        );
        vm.assertGt(pairs.length, 60);
        for (uint256 i = 0; i < pairs.length; ++i) {
            Leaves memory pair = pairs[i];
            vm.assertEq(pair.x.length, LEAF_BYTES);
            vm.assertEq(pair.y.length, LEAF_BYTES);
            vm.assertEq(harness.ofLeaves(pair.x, pair.y, pair.words, pair.dtype, pair.scale), pair.sum, pair.name);
            vm.assertEq(harness.ofLeaves(pair.y, pair.x, pair.words, pair.dtype, pair.scale), pair.sum, pair.name);
        }
    }

    function test_sums() public view {
        Sum[] memory sums =
            abi.decode(TYPES.parseJsonTypeArray(json, ".sums", "Sum(uint256[] parts,uint256 sum)"), (Sum[]));
        vm.assertGt(sums.length, 0);
        for (uint256 i = 0; i < sums.length; ++i) {
            uint256 total = 0;
            for (uint256 j = 0; j < sums[i].parts.length; ++j) {
                total = harness.add(total, sums[i].parts[j]);
            }
            vm.assertEq(total, sums[i].sum);
        }
    }
}
