// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {VectorHash} from "../../../contracts/zk/VectorHash.sol";
import {VectorState} from "../../../contracts/zk/VectorState.sol";
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

/// @notice Roots of states and their integers are those that Python computes, and each integer has one word.
contract VectorStateTest is Base {
    string private constant FILE = "fixtures/vectors/vector_state.json";
    bytes private constant TWO = abi.encodePacked(uint8(1), uint8(1), uint32(2));

    struct Shown {
        int256[] integers;
        bytes32 root;
        uint8 scale;
        bytes types;
        bytes words;
    }

    function rootOf(bytes calldata types, bytes calldata words) external pure returns (bytes32) {
        return VectorState.root(types, words);
    }

    function integersOf(bytes calldata words, uint8 scale) external pure returns (int256[] memory) {
        return VectorState.integers(words, scale);
    }

    function test_vectors() public view {
        string memory form = "Row(int256[] integers,bytes32 root,uint8 scale,bytes types,bytes words)";
        Shown[] memory rows = abi.decode(vm.parseJsonTypeArray(vm.readFile(FILE), ".rows", form), (Shown[]));
        vm.assertEq(rows.length, 6);
        for (uint256 i = 0; i < rows.length; ++i) {
            Shown memory row = rows[i];
            vm.assertEq(this.rootOf(row.types, row.words), row.root);
            int256[] memory found = this.integersOf(row.words, row.scale);
            vm.assertEq(abi.encode(found), abi.encode(row.integers));
        }
    }

    /// @dev All words: those of fixed point give what this reading of IEEE 754 gives, the others nothing.
    function testFuzz_any_word(uint32 word, uint8 scale) public {
        scale = uint8(bound(scale, 0, 160));
        _expectInteger(word, scale);
    }

    /// @dev Words near what there is, which few drawn words are.
    function testFuzz_words_of_small_multiples(int256 value, uint8 scale, uint8 lost) public {
        value = int256(bound(uint256(value), 0, 1 << 24)) - int256(1 << 23);
        scale = uint8(bound(scale, 0, 60));
        lost = uint8(bound(lost, 0, 2));
        if (value != 0) _expectInteger(_wordOf(value, scale + lost), scale);
    }

    function test_zero_has_no_sign() public {
        vm.assertEq(uint256(this.integersOf(hex"00000000", 20)[0]), 0);
        _expectNone(hex"00000080", 20, 0);
    }

    function test_which_word_is_wrong() public {
        _expectNone(hex"000000000000c03f0000c07f", 20, 2);
    }

    function test_types_of_float32_only() public {
        _expectLayout("", "", 0);
        _expectLayout(hex"01", new bytes(8), 0);
        _expectLayout(abi.encodePacked(uint8(2), uint8(1), uint32(2)), new bytes(8), 0);
        _expectLayout(abi.encodePacked(uint8(1), uint8(2), uint32(2)), new bytes(8), 0);
        _expectLayout(abi.encodePacked(TWO, uint8(1)), new bytes(8), 6);
        _expectLayout(abi.encodePacked(uint8(1), uint8(1), uint32(0)), "", 2);
        _expectLayout(abi.encodePacked(uint8(1), uint8(2), uint32(1 << 16), uint32(1 << 16)), "", 6);
    }

    function test_as_many_words_as_the_types_have() public {
        this.rootOf(TWO, new bytes(8));
        uint256[4] memory sizes = [uint256(0), 4, 7, 12];
        for (uint256 i = 0; i < sizes.length; ++i) {
            bytes memory words = new bytes(sizes[i]);
            vm.expectRevert(abi.encodeWithSelector(VectorState.WrongSize.selector, sizes[i], uint256(8)));
            this.rootOf(TWO, words);
        }
    }

    /// @dev Other splits of the same bytes are other states.
    function test_the_split_into_tensors_counts() public view {
        bytes memory one = abi.encodePacked(uint8(1), uint8(1), uint32(4));
        bytes memory square = abi.encodePacked(uint8(1), uint8(2), uint32(2), uint32(2));
        bytes memory halves = abi.encodePacked(TWO, TWO);
        bytes memory words = abi.encodePacked(uint128(7));
        vm.assertNotEq(this.rootOf(one, words), this.rootOf(square, words));
        vm.assertNotEq(this.rootOf(one, words), this.rootOf(halves, words));
    }

    function _expectInteger(uint32 word, uint8 scale) private {
        (bool exists, int256 expected) = _integer(word, scale);
        bytes memory words = abi.encodePacked(uint8(word), uint8(word >> 8), uint8(word >> 16), uint8(word >> 24));
        if (exists) vm.assertEq(this.integersOf(words, scale)[0], expected);
        else _expectNone(words, scale, 0);
    }

    /// @dev Multiplies by 2^scale one doubling at a time, in halves of the smallest subnormal.
    function _integer(uint32 word, uint8 scale) private pure returns (bool exists, int256 value) {
        if (word == 0) return (true, 0);
        uint256 exponent = uint8(word >> 23);
        if (exponent == 0 || exponent == 255) return (false, 0);
        value = int256(uint256(word & 0x7fffff | 0x800000));
        int256 power = int256(exponent) - 150 + int256(uint256(scale));
        for (; power < 0 && value % 2 == 0; ++power) {
            value /= 2;
        }
        for (; power > 0 && value <= 1 << 23; --power) {
            value *= 2;
        }
        if (power != 0) return (false, 0);
        if (word >> 31 == 1) value = -value;
        return (value >= -(1 << 23) && value < 1 << 23, value);
    }

    /// @dev The word of `value * 2^-scale`, for a value that isn't zero.
    function _wordOf(int256 value, uint256 scale) private pure returns (uint32) {
        uint256 magnitude = uint256(value < 0 ? -value : value);
        uint256 exponent = 150 - scale;
        for (; magnitude < 1 << 23; magnitude *= 2) {
            --exponent;
        }
        for (; magnitude >= 1 << 24; magnitude /= 2) {
            ++exponent;
        }
        return uint32(uint256(value < 0 ? 1 << 31 : 0) | exponent << 23 | magnitude & 0x7fffff);
    }

    function _expectNone(bytes memory words, uint8 scale, uint256 index) private {
        vm.expectRevert(abi.encodeWithSelector(VectorState.NotFixedPoint.selector, index));
        this.integersOf(words, scale);
    }

    function _expectLayout(bytes memory types, bytes memory words, uint256 offset) private {
        vm.expectRevert(abi.encodeWithSelector(VectorState.InvalidLayout.selector, offset));
        this.rootOf(types, words);
    }
}
