// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Descriptor, Header, NodeOutline, NodeView, OperandView} from "../../../contracts/dispute/Descriptor.sol";
import {SlotView} from "../../../contracts/dispute/Descriptor.sol";
import {NaiveTree, ScalarMachine, Toy} from "./Toy.sol";

contract DescriptorHarness {
    function header(bytes calldata data) external pure returns (Header memory) {
        return Descriptor.header(data);
    }

    function slot(bytes calldata data) external pure returns (SlotView memory) {
        return Descriptor.slot(data);
    }

    function node(bytes calldata data) external pure returns (NodeView memory result) {
        Descriptor.readNode(result, data);
    }

    function operand(bytes calldata data, uint256 index) external pure returns (OperandView memory result) {
        NodeView memory found;
        Descriptor.readNode(found, data);
        Descriptor.readOperand(result, data, found.operandAt[index], found.coordinates);
    }

    function operandAt(bytes calldata data, uint256 offset, uint256 coordinates)
        external
        pure
        returns (OperandView memory result)
    {
        Descriptor.readOperand(result, data, offset, coordinates);
    }

    function i64(bytes calldata data, uint256 offset) external pure returns (int64) {
        return Descriptor.i64(data, offset);
    }

    function outline(bytes calldata data) external pure returns (NodeOutline memory) {
        return Descriptor.outline(data);
    }

    function leaves(uint256 elements) external pure returns (uint256) {
        return Descriptor.leaves(elements);
    }

    function affine(bytes calldata data, uint256[] memory coordinates) external pure returns (int256) {
        return Descriptor.affine(data, 0, coordinates);
    }
}

/// @notice Descriptors are read as written, or not at all.
contract DescriptorTest is Toy {
    DescriptorHarness private harness = new DescriptorHarness();

    function setUp() public {
        _buildToy(1);
    }

    function test_header_of_another_version_or_without_nodes_or_slots() public {
        for (uint256 i = 3; i < 12; i += 4) {
            bytes memory header = _header();
            header[i] = i == 3 ? bytes1(0x02) : bytes1(0);
            vm.expectPartialRevert(Descriptor.OutOfRange.selector);
            harness.header(header);
        }
    }

    function test_slot_of_another_length() public {
        bytes memory slot = slots[1];
        vm.expectPartialRevert(Descriptor.TrailingBytes.selector);
        harness.slot(abi.encodePacked(slot, uint8(0)));
        for (uint256 length = 0; length < slot.length; length++) {
            vm.expectPartialRevert(Descriptor.Truncated.selector);
            harness.slot(_cut(slot, length));
        }
    }

    function test_slot_out_of_range() public {
        // Component 0 and 4; dtype 0 and 3; rank 9; dimension 0 and 2^31; scale 24.
        bytes[8] memory wrong = [
            abi.encodePacked(uint8(0), _type(1, 3), uint32(2), uint8(0)),
            abi.encodePacked(uint8(4), _type(1, 3), uint32(2), uint8(0)),
            abi.encodePacked(uint8(1), _type(0, 3), uint32(2), uint8(0)),
            abi.encodePacked(uint8(1), _type(3, 3), uint32(2), uint8(0)),
            abi.encodePacked(uint8(1), uint8(1), uint8(9), new bytes(36), uint32(2), uint8(0)),
            abi.encodePacked(uint8(1), _type(1, 0), uint32(2), uint8(0)),
            abi.encodePacked(uint8(1), _type(1, 2 ** 31), uint32(2), uint8(0)),
            abi.encodePacked(uint8(1), _type(1, 3), uint32(2), uint8(24))
        ];
        for (uint256 i = 0; i < wrong.length; i++) {
            vm.expectPartialRevert(Descriptor.OutOfRange.selector);
            harness.slot(wrong[i]);
        }
    }

    function test_node() public view {
        NodeView memory node = harness.node(nodes[1]);
        vm.assertEq(node.output.elements, 1);
        vm.assertEq(node.terms, 3);
        vm.assertEq(node.coordinates, 2);
        vm.assertEq(node.operandAt.length, 2);
        vm.assertEq(node.body.inputs, 3);
        vm.assertEq(node.body.instructions, 1);
        OperandView memory gathered = harness.operand(nodes[1], 1);
        vm.assertEq(gathered.source, 3);
        vm.assertEq(gathered.index, 0);
        vm.assertEq(uint256(gathered.fill), ONE);
        vm.assertEq(gathered.tensor.elements, 2);
        vm.assertEq(gathered.gatherAt, 0);
    }

    function test_outline_says_what_the_node_says() public view {
        for (uint256 n = 0; n < 5; n++) {
            NodeView memory node = harness.node(nodes[n]);
            NodeOutline memory outline = harness.outline(nodes[n]);
            vm.assertEq(keccak256(abi.encode(outline.output)), keccak256(abi.encode(node.output)));
            vm.assertEq(outline.terms, node.terms);
            vm.assertEq(uint256(outline.init), uint256(node.init));
            vm.assertEq(outline.instructions, node.body.instructions);
        }
    }

    /// @dev However long its counts claim it to be, an outline ends with the descriptor.
    function test_outline_of_a_cut_descriptor() public {
        for (uint256 n = 0; n < 5; n++) {
            uint256 body = harness.node(nodes[n]).bodyAt;
            for (uint256 length = 0; length < body + 3; length++) {
                vm.expectPartialRevert(Descriptor.Truncated.selector);
                harness.outline(_cut(nodes[n], length));
            }
        }
    }

    /// @dev Every proper prefix of every descriptor, and every descriptor with a byte more.
    function test_node_of_another_length() public {
        for (uint256 n = 0; n < 5; n++) {
            bytes memory node = nodes[n];
            harness.node(node);
            vm.expectPartialRevert(ScalarMachine.InvalidProgram.selector);
            harness.node(abi.encodePacked(node, uint8(0)));
            for (uint256 length = 0; length < node.length; length++) {
                vm.expectRevert();
                harness.node(_cut(node, length));
            }
        }
    }

    function _refuse(uint256 n, uint256 offset, bytes1 value) private {
        bytes memory node = nodes[n];
        node[offset] = value;
        vm.expectRevert();
        harness.node(node);
    }

    function test_node_out_of_range() public {
        _refuse(0, 0, 0x02); // version
        _refuse(0, 1, 0x03); // dtype
        _refuse(0, 2, 0x09); // rank
        _refuse(0, 3, 0x80); // elements
        _refuse(0, 6, 0x00); // no elements
        _refuse(0, 7, 0x05); // fold rank
        _refuse(0, 11, 0x01); // a map with an initial accumulator
        _refuse(0, 12, 0x11); // operands
        _refuse(1, 7, 0x00); // no terms
        NodeView memory node = harness.node(nodes[0]);
        _refuse(0, node.inputAt - 1, 0x02); // inputs that the body does not have
    }

    /// @dev Where it is long enough to be one.
    function test_operand_out_of_range() public {
        uint256 at_ = harness.node(nodes[0]).operandAt[0];
        OperandView memory index = harness.operand(nodes[0], 0);
        _refuseOperand(at_, 0x00); // source
        _refuseOperand(at_, 0x04); // source
        _refuseOperand(at_ + 5, 0x03); // dtype
        _refuseOperand(at_ + 6, 0x09); // rank
        _refuseOperand(at_ + 7, 0x80); // elements
        _refuseOperand(index.boundAt - 1, 0x05); // bounds
        _refuseOperand(index.end - 1, 0x02); // gather
    }

    function _refuseOperand(uint256 offset, bytes1 value) private {
        bytes memory node = nodes[0];
        node[offset] = value;
        vm.expectRevert();
        harness.operand(node, 0);
    }

    /// @dev Both counts of inputs: the node's, and the one that its body begins with.
    function test_body_with_other_inputs() public {
        bytes memory node = nodes[0];
        NodeView memory found = harness.node(node);
        vm.assertEq(uint256(uint8(node[found.bodyAt])), 1);
        node[found.bodyAt] = 0x02;
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, found.inputAt - 1));
        harness.node(node);
    }

    /// @dev An operand by itself: its counts are what `readOperand` says, whatever was walked over before.
    function test_operand_with_wrong_counts() public {
        // A slot of three words; base and two strides; one bound; a gather.
        bytes memory before = abi.encodePacked(uint8(1), uint32(0), _type(1, 3), uint32(9), new bytes(24));
        bytes memory bound_ = abi.encodePacked(new bytes(24), int64(3));
        bytes memory gather = abi.encodePacked(uint8(0), int64(1), int64(3));
        bytes memory whole = abi.encodePacked(before, uint8(1), bound_, uint8(1), gather);
        OperandView memory operand = harness.operandAt(whole, 0, 2);
        vm.assertEq(operand.end, whole.length);
        vm.assertEq(operand.boundAt, before.length + 1);
        vm.assertEq(operand.gatherAt, whole.length - 17);
        for (uint256 length = before.length; length < whole.length; length++) {
            vm.expectPartialRevert(Descriptor.Truncated.selector);
            harness.operandAt(_cut(whole, length), 0, 2);
        }
        whole[before.length] = 0x05;
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, before.length));
        harness.operandAt(whole, 0, 2);
        whole[before.length] = 0x01;
        whole[operand.gatherAt - 1] = 0x02;
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, operand.gatherAt - 1));
        harness.operandAt(whole, 0, 2);
    }

    function test_numbers_past_the_end() public {
        bytes memory data = hex"ff00000000000000ff80000000000000ff";
        vm.assertEq(int256(harness.i64(data, 9)), -(2 ** 63) + 255);
        vm.expectRevert(abi.encodeWithSelector(Descriptor.Truncated.selector, 18));
        harness.i64(data, 10);
        uint256[] memory one = new uint256[](1);
        harness.affine(_cut(data, 16), one);
        vm.expectRevert(abi.encodeWithSelector(Descriptor.Truncated.selector, 16));
        harness.affine(_cut(data, 15), one);
    }

    function testFuzz_affine(int64 base, int64[13] memory strides, uint64[13] memory coordinates) public view {
        bytes memory form = abi.encodePacked(base);
        uint256[] memory at_ = new uint256[](13);
        int256 expected = base;
        for (uint256 i = 0; i < 13; i++) {
            form = abi.encodePacked(form, strides[i]);
            at_[i] = coordinates[i];
            expected += int256(strides[i]) * int256(uint256(coordinates[i]));
        }
        vm.assertEq(harness.affine(form, at_), expected);
    }

    // --- limits ---

    /// @dev `count` dimensions of the same size.
    function _dims(uint8 count, uint32 size) private pure returns (bytes memory dims) {
        dims = abi.encodePacked(count);
        for (uint256 i = 0; i < count; i++) {
            dims = abi.encodePacked(dims, size);
        }
    }

    /// @dev A node without inputs, whose body is one constant.
    function _constant(bytes memory shape, bytes memory fold, uint32 init, bytes memory operands)
        private
        pure
        returns (bytes memory)
    {
        return abi.encodePacked(hex"0101", shape, fold, init, operands, hex"000001013f80000031000000");
    }

    /// @dev So many operands of so many coordinates, with their count.
    function _operands(uint8 count, uint256 coordinates) private pure returns (bytes memory operands) {
        operands = abi.encodePacked(count);
        for (uint256 i = 0; i < count; i++) {
            operands = abi.encodePacked(
                operands,
                uint8(1),
                uint32(2 ** 31 + 1),
                _type(1, 3),
                uint32(9),
                new bytes(8 + 8 * coordinates),
                hex"0000"
            );
        }
    }

    function test_header_to_the_last_byte() public {
        bytes memory header = _header();
        Header memory found = harness.header(header);
        vm.assertEq(found.nodesTree, NaiveTree.tree(_nodeHashes()));
        vm.assertEq(found.slotsTree, NaiveTree.tree(_slotHashes()));
        vm.expectRevert(Descriptor.WrongHeader.selector);
        harness.header(abi.encodePacked(header, uint8(0)));
        vm.expectRevert(Descriptor.WrongHeader.selector);
        harness.header(_cut(header, header.length - 1));
        header[3] = 0x02;
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, 0));
        harness.header(header);
        header[3] = 0x01;
        // 2^31 nodes and slots, and one more.
        for (uint256 at_ = 4; at_ < 12; at_ += 4) {
            header[at_] = 0x80;
            header[at_ + 3] = 0x00;
            harness.header(header);
            header[at_ + 3] = 0x01;
            vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, at_));
            harness.header(header);
            header[at_ + 3] = 0x00;
        }
    }

    function test_limits_of_a_slot() public {
        bytes memory tail = abi.encodePacked(uint32(2), uint8(23));
        vm.assertEq(uint256(harness.slot(abi.encodePacked(uint8(3), _type(1, 3), tail)).scale), 23);
        vm.assertEq(harness.slot(abi.encodePacked(uint8(3), _type(1, 2 ** 31 - 1), tail)).tensor.elements, 2 ** 31 - 1);
        harness.slot(abi.encodePacked(uint8(3), uint8(1), _dims(8, 1), tail));
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, 2));
        harness.slot(abi.encodePacked(uint8(3), uint8(1), _dims(9, 1), tail));
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, 0));
        harness.slot(abi.encodePacked(uint8(4), _type(1, 3), tail));
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, 11));
        harness.slot(abi.encodePacked(uint8(3), _type(1, 3), uint32(2), uint8(24)));
        bytes memory slot = abi.encodePacked(uint8(3), _type(1, 3), tail);
        vm.expectRevert(abi.encodeWithSelector(Descriptor.TrailingBytes.selector, 12));
        harness.slot(abi.encodePacked(slot, uint8(0)));
        // Whose bytes are missing: the component's, the producer's, the scale's.
        uint8[2][5] memory missing = [[0, 1], [7, 11], [8, 11], [10, 11], [11, 12]];
        for (uint256 i = 0; i < 5; i++) {
            vm.expectRevert(abi.encodeWithSelector(Descriptor.Truncated.selector, missing[i][1]));
            harness.slot(_cut(slot, missing[i][0]));
        }
    }

    function test_limits_of_a_node() public {
        bytes memory node = _constant(_dims(3, 2), _dims(3, 2), 0x80000001, _operands(2, 7));
        NodeView memory found = harness.node(node);
        vm.assertEq(found.coordinates, 7);
        vm.assertEq(uint256(found.init), 0x80000001);
        vm.assertEq(uint256(harness.outline(node).init), 0x80000001);
        vm.assertEq(harness.outline(node).instructions, 1);
        OperandView memory operand = harness.operand(node, 1);
        vm.assertEq(operand.index, 2 ** 31 + 1);
        vm.assertEq(operand.affineAt, found.operandAt[1] + 15);
        vm.expectRevert(abi.encodeWithSelector(Descriptor.Truncated.selector, found.bodyAt));
        harness.node(_cut(node, found.bodyAt - 1));
        vm.expectPartialRevert(ScalarMachine.InvalidProgram.selector);
        harness.node(_cut(node, found.bodyAt));
        node[0] = 0x02;
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, 0));
        harness.node(node);
        harness.node(_constant(hex"00", _dims(4, 1), 0, hex"00"));
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, 3));
        harness.node(_constant(hex"00", _dims(5, 1), 0, hex"00"));
        vm.assertEq(harness.node(_constant(hex"00", _dims(1, 2 ** 32 - 1), 0, hex"00")).terms, 2 ** 32 - 1);
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, 8));
        harness.node(_constant(hex"00", _dims(2, 2 ** 16), 0, hex"00"));
        vm.assertEq(harness.node(_constant(hex"00", hex"00", 0, _operands(16, 1))).operandAt.length, 16);
        vm.expectRevert(abi.encodeWithSelector(Descriptor.OutOfRange.selector, 8));
        harness.node(_constant(hex"00", hex"00", 0, _operands(17, 1)));
    }

    function test_leaves_of_a_tensor() public view {
        uint256[2][3] memory known = [[uint256(1), 1], [uint256(64), 1], [uint256(65), 2]];
        for (uint256 i = 0; i < known.length; i++) {
            vm.assertEq(harness.leaves(known[i][0]), known[i][1]);
        }
    }

    function test_four_bounds() public view {
        bytes memory operand = abi.encodePacked(
            uint8(1), uint32(0), _type(1, 3), uint32(9), new bytes(16), uint8(4), new bytes(4 * 24), uint8(0)
        );
        vm.assertEq(harness.operandAt(operand, 0, 1).bounds, 4);
    }

    function _cut(bytes memory data, uint256 length) private pure returns (bytes memory cut) {
        cut = new bytes(length);
        for (uint256 i = 0; i < length; i++) {
            cut[i] = data[i];
        }
    }
}
