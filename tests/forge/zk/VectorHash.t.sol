// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {VectorHash} from "../../../contracts/zk/VectorHash.sol";
import {Base} from "../Base.sol";

/// @notice The hash of vectors is the one that Python and the circuits compute.
contract VectorHashTest is Base {
    string private constant FILE = "fixtures/vectors/vector_hash.json";
    int256 private constant HALF = 1 << 23;

    VectorHash private hasher;
    bytes private constants;

    struct Hashed {
        bytes32 hash;
        int256[] vector;
    }

    function setUp() public {
        constants = vm.parseJsonBytes(vm.readFile(FILE), ".constants");
        hasher = new VectorHash(constants);
    }

    function create(bytes calldata table) external returns (VectorHash) {
        return new VectorHash(table);
    }

    function test_vectors() public view {
        string memory form = "Row(bytes32 hash,int256[] vector)";
        Hashed[] memory rows = abi.decode(vm.parseJsonTypeArray(vm.readFile(FILE), ".rows", form), (Hashed[]));
        vm.assertEq(rows.length, 15);
        for (uint256 i = 0; i < rows.length; ++i) {
            vm.assertEq(hasher.hash(rows[i].vector), rows[i].hash);
        }
    }

    function testFuzz_no_two_vectors_have_one_hash(uint256 size, uint256 place, int256 other) public view {
        int256[] memory vector = new int256[](bound(size, 1, 45));
        bytes32 before = hasher.hash(vector);
        vector[place % vector.length] = other = other % HALF;
        vm.assertEq(hasher.hash(vector) == before, other == 0);
    }

    /// @dev Nothing after the last integer is not a least integer there.
    function testFuzz_a_longer_vector_is_another_one(uint256 size) public view {
        size = bound(size, 0, 45);
        (int256[] memory one, int256[] memory longer) = (new int256[](size), new int256[](size + 1));
        longer[size] = -HALF;
        vm.assertNotEq(hasher.hash(one), hasher.hash(longer));
    }

    function testFuzz_integers_of_24_bits(uint256 size, uint256 place, int256 value) public {
        int256[] memory vector = new int256[](bound(size, 1, 45));
        place = place % vector.length;
        if (value < -HALF) value = -HALF;
        if (value >= HALF) value = HALF - 1;
        vector[place] = value;
        hasher.hash(vector);
        int256[4] memory wrong = [HALF, -HALF - 1, type(int256).max - HALF, type(int256).min];
        for (uint256 i = 0; i < wrong.length; ++i) {
            vector[place] = wrong[i];
            vm.expectRevert(abi.encodeWithSelector(VectorHash.TooLarge.selector, place));
            hasher.hash(vector);
        }
    }

    function test_no_other_constants() public {
        bytes memory wrong = constants;
        wrong[6000] ^= 0x01;
        vm.expectRevert(VectorHash.WrongConstants.selector);
        this.create(wrong);
    }
}
