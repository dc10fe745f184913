// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {InstructionBase} from "./InstructionBase.sol";
import {IOneStep, PackedReader, Picked} from "./StepBase.sol";

/// @notice One instruction: which levels, facts and lengths are taken, and that any descriptor is answered in bounded
/// gas.
contract OneStepTest is InstructionBase {
    function test_other_levels() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        for (uint8 level = 0; level < 12; level++) {
            if (level == LEAF || level == TERMS || level == BODY) continue;
            p.level = level;
            vm.expectPartialRevert(IOneStep.NotProvable.selector);
            oneStep.execute(p, "", _rest(f, TERMS, ""));
        }
    }

    function test_each_fact_is_bound() public {
        bytes memory values = abi.encodePacked(uint32(107), uint32(215), uint32(0xff));
        (Facts memory f, Picked memory p) = _ofBody(0, values);
        f = _withRoots(f);
        p.frame = _frame(f, BODY, 4, 5, 3);
        bytes memory rest = _rest(f, BODY, "");
        oneStep.execute(p, values, rest);
        // From the program's hash to the node's index: any bit of any byte, but for the flag and the count of roots.
        uint256 count = 1 + 4 * 32 + 8;
        for (uint256 i = 1; i < count + 1 + 3 * 33 + 4; i++) {
            if (i == count) continue;
            rest[i] ^= 0x10;
            vm.expectPartialRevert(IOneStep.WrongFacts.selector);
            oneStep.execute(p, values, rest);
            rest[i] ^= 0x10;
        }
        // Element, term and accumulator.
        for (uint256 i = rest.length - 20; i < rest.length; i++) {
            rest[i] ^= 0x10;
            vm.expectPartialRevert(IOneStep.WrongFacts.selector);
            oneStep.execute(p, values, rest);
            rest[i] ^= 0x10;
        }
        // The last byte of the descriptor, which the machine looks at later.
        rest[rest.length - 21] ^= 0x10;
        vm.expectPartialRevert(IOneStep.WrongFacts.selector);
        oneStep.execute(p, values, rest);
    }

    function test_frame_of_another_level() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        p.frame = _frame(f, LEAF, 4, 0, 1);
        vm.expectPartialRevert(IOneStep.WrongFacts.selector);
        oneStep.execute(p, "", _rest(f, TERMS, ""));
    }

    /// @dev The frame is one of another length of fold, start or body: what a descriptor says is computed, not shown.
    function test_outline_is_computed() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        bytes32[3] memory frames = [_frame(f, TERMS, 5, 0, 1), _frame(f, TERMS, 4, 1, 1), _frame(f, TERMS, 4, 0, 2)];
        for (uint256 i = 0; i < 3; i++) {
            p.frame = frames[i];
            vm.expectPartialRevert(IOneStep.WrongFacts.selector);
            oneStep.execute(p, "", _rest(f, TERMS, ""));
        }
    }

    function test_one_root_more_or_less() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        f = _withRoots(f);
        p.frame = _frame(f, TERMS, 4, 0, 1);
        oneStep.execute(p, "", _rest(f, TERMS, ""));
        (bytes32[] memory roots, uint8[] memory lower) = (new bytes32[](2), new uint8[](2));
        (roots[0], roots[1], lower[0], lower[1]) = (f.roots[0], f.roots[1], f.heights[0], f.heights[1]);
        (f.roots, f.heights) = (roots, lower);
        vm.expectPartialRevert(IOneStep.WrongFacts.selector);
        oneStep.execute(p, "", _rest(f, TERMS, ""));
    }

    /// @dev Every shorter proof, and a longer one; the errors say by how many bytes.
    function test_length_is_exact() public {
        (Facts memory f, Picked memory p) = _ofWord(_reader(3, 28, hex"00"), 0);
        bytes memory rest = _rest(f, LEAF, _openNode(28, 2, 2));
        oneStep.execute(p, "", rest);
        uint256 length = rest.length;
        bytes memory longer = abi.encodePacked(rest, uint24(0));
        vm.expectRevert(abi.encodeWithSelector(PackedReader.LeftOver.selector, 3));
        oneStep.execute(p, "", longer);
        assembly ("memory-safe") {
            mstore(rest, sub(length, 2))
        }
        vm.expectRevert(abi.encodeWithSelector(PackedReader.MissingBytes.selector, 2));
        oneStep.execute(p, "", rest);
        for (uint256 i = 0; i < length; i += 1 + i / 64) {
            assembly ("memory-safe") {
                mstore(rest, i)
            }
            vm.expectPartialRevert(PackedReader.MissingBytes.selector);
            oneStep.execute(p, "", rest);
        }
    }

    function test_flag_is_zero_or_one() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        bytes memory rest = _rest(f, TERMS, "");
        rest[0] = 0x02;
        vm.expectPartialRevert(IOneStep.InvalidFlag.selector);
        oneStep.execute(p, "", rest);
    }

    /// @dev A descriptor that ends early, at every byte, is read inside of its bytes only.
    function test_descriptor_that_ends_early() public {
        bytes memory whole = _reader(1, 0, hex"00");
        bytes memory opening = _open(1, 0, 0);
        (Facts memory f, Picked memory p) = _ofWord(whole, 0);
        for (uint256 length = 0; length < whole.length; length++) {
            bytes memory cut = new bytes(length);
            for (uint256 i = 0; i < length; i++) {
                cut[i] = whole[i];
            }
            f.descriptor = cut;
            p.frame = _frame(f, LEAF, 1, 0, 1);
            bytes memory rest = _rest(f, LEAF, opening);
            vm.expectRevert();
            oneStep.execute(p, "", rest);
        }
    }

    /// @dev Any descriptor, whatever its bytes: a revert, or a result, in bounded gas. With two openings of a leaf the
    /// dearest seen takes less than 60,000.
    function testFuzz_hostile_descriptor(bytes calldata noise, uint256 place, uint8 value) public view {
        bytes memory descriptor = _reader(1, 0, abi.encodePacked(hex"0100", int64(1), int64(41)));
        if (noise.length > 0 && noise.length % 2 == 0) descriptor = noise;
        else descriptor[place % descriptor.length] = bytes1(value);
        (Facts memory f, Picked memory p) = _ofWord(descriptor, 0);
        bytes memory rest = _rest(f, LEAF, abi.encodePacked(_open(1, 2, 0), _open(1, 0, 0)));
        uint256 before = gasleft();
        try oneStep.execute{gas: 1_000_000}(p, "", rest) {} catch {}
        vm.assertLe(before - gasleft(), 100_000);
    }
}
