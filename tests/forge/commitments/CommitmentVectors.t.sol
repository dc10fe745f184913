// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    LEAF_BYTES,
    MerkleBranch,
    PAD,
    TAG_LEAF,
    TAG_NODE,
    TAG_SLOT
} from "../../../contracts/commitments/MerkleBranch.sol";
import {Descriptor, Header, NodeView, SlotView, TypeView} from "../../../contracts/dispute/Descriptor.sol";
import {Base} from "../Base.sol";
import {NaiveTree} from "./NaiveTree.sol";

/// @notice The cheatcodes that read records; a type description names the keys and orders the fields.
interface IJsonRecords {
    function parseJsonBool(string calldata json, string calldata key) external pure returns (bool);
    function parseJsonType(string calldata json, string calldata key, string calldata typeDescription)
        external
        pure
        returns (bytes memory);
    function parseJsonTypeArray(string calldata json, string calldata key, string calldata typeDescription)
        external
        pure
        returns (bytes memory);
}

/// @notice Puts bytes and branches into calldata, where the libraries want them.
contract CommitmentReader {
    function climbIn(bytes32 leaf, uint256 index, bytes32[] calldata branch, uint256 count)
        external
        pure
        returns (bytes32)
    {
        return MerkleBranch.climbIn(leaf, index, branch, count);
    }

    function root(bytes calldata row, uint256 depth, uint256 height) external pure returns (bytes32) {
        return MerkleBranch.root(row, depth, height);
    }

    function tagged(uint8 tag, bytes calldata content) external pure returns (bytes32) {
        return MerkleBranch.tagged(tag, content);
    }

    function tensorRoot(bytes calldata descriptor, bytes32 tree) external pure returns (bytes32) {
        return MerkleBranch.tensorRoot(descriptor, tree);
    }

    function tensorType(bytes calldata data) external pure returns (TypeView memory) {
        return Descriptor.tensorType(data, 0);
    }

    function header(bytes calldata data, bytes32 program) external pure returns (Header memory) {
        if (Descriptor.programOf(data) != program) revert Descriptor.WrongHeader();
        return Descriptor.header(data);
    }

    function slot(bytes calldata data) external pure returns (SlotView memory) {
        return Descriptor.slot(data);
    }

    function nodeOperands(bytes calldata data) external pure returns (uint256) {
        NodeView memory node;
        Descriptor.readNode(node, data);
        return node.operandAt.length;
    }
}

/// @notice docs/spec/commitments.md in bytes, computed by tests/commitments/test_commitment_vectors.py.
contract CommitmentVectorsTest is Base {
    struct Inner {
        bytes32 left;
        bytes32 right;
        bytes32 hash;
    }

    struct Data {
        bytes leaf;
        bytes32 hash;
    }

    struct Tree {
        uint32 size;
        bytes32 root;
    }

    struct Branch {
        uint32 size;
        uint32 index;
        bytes32[] siblings;
    }

    struct Tensor {
        uint8 dtype;
        uint32[] shape;
        bytes descriptor;
        uint32[] words;
        bytes32[] leaves;
        bytes32 tree;
        bytes32 root;
    }

    struct List {
        uint8 tag;
        uint32[] tensors;
        bytes32 root;
    }

    IJsonRecords private constant TYPES = IJsonRecords(address(vm));

    CommitmentReader private reader = new CommitmentReader();
    string private json;

    function setUp() public {
        json = vm.readFile("fixtures/vectors/commitments.json");
    }

    function _records(string memory key, string memory description) private view returns (bytes memory) {
        return TYPES.parseJsonTypeArray(json, key, description);
    }

    function _tensors() private view returns (Tensor[] memory) {
        return abi.decode(
            _records(
                ".tensors",
                "Tensor(uint8 dtype,uint32[] shape,bytes descriptor,uint32[] words,bytes32[] leaves,bytes32 tree,bytes32 root)"
            ),
            (Tensor[])
        );
    }

    function test_padding() public view {
        vm.assertEq(PAD, vm.parseJsonBytes32(json, ".pad"));
        bytes32[] memory padding = vm.parseJsonBytes32Array(json, ".padding");
        vm.assertGt(padding.length, 5);
        for (uint256 height = 0; height < padding.length; ++height) {
            vm.assertEq(MerkleBranch.padding(height), padding[height]);
        }
    }

    function test_inner_nodes() public view {
        Inner[] memory inner =
            abi.decode(_records(".inner", "Inner(bytes32 left,bytes32 right,bytes32 hash)"), (Inner[]));
        vm.assertGt(inner.length, 0);
        for (uint256 i = 0; i < inner.length; ++i) {
            vm.assertEq(MerkleBranch.inner(inner[i].left, inner[i].right), inner[i].hash);
        }
    }

    function test_data_leaves() public view {
        Data[] memory data = abi.decode(_records(".data", "Data(bytes leaf,bytes32 hash)"), (Data[]));
        vm.assertGt(data.length, 0);
        for (uint256 i = 0; i < data.length; ++i) {
            vm.assertEq(data[i].leaf.length, LEAF_BYTES);
            vm.assertEq(reader.tagged(TAG_LEAF, data[i].leaf), data[i].hash);
        }
    }

    function test_trees() public view {
        bytes32[] memory hashes = vm.parseJsonBytes32Array(json, ".hashes");
        Tree[] memory trees = abi.decode(_records(".trees", "Tree(uint32 size,bytes32 root)"), (Tree[]));
        vm.assertEq(trees.length, 21);
        for (uint256 i = 0; i < trees.length; ++i) {
            vm.assertEq(_tree(_first(hashes, trees[i].size)), trees[i].root, vm.toString(trees[i].size));
        }
    }

    function test_branches() public view {
        bytes32[] memory hashes = vm.parseJsonBytes32Array(json, ".hashes");
        Tree[] memory trees = abi.decode(_records(".trees", "Tree(uint32 size,bytes32 root)"), (Tree[]));
        bytes32[] memory roots = new bytes32[](hashes.length + 1);
        for (uint256 i = 0; i < trees.length; ++i) {
            roots[trees[i].size] = trees[i].root;
        }
        Branch[] memory branches =
            abi.decode(_records(".branches", "Branch(uint32 size,uint32 index,bytes32[] siblings)"), (Branch[]));
        vm.assertGt(branches.length, 200);
        for (uint256 i = 0; i < branches.length; ++i) {
            Branch memory b = branches[i];
            vm.assertEq(reader.climbIn(hashes[b.index], b.index, b.siblings, b.size), roots[b.size]);
        }
    }

    /// @dev Leaves from the words by test code, everything above them by the libraries of the contracts.
    function test_tensors() public view {
        Tensor[] memory tensors = _tensors();
        vm.assertGt(tensors.length, 0);
        for (uint256 i = 0; i < tensors.length; ++i) {
            Tensor memory t = tensors[i];
            TypeView memory view_ = reader.tensorType(t.descriptor);
            vm.assertEq(view_.dtype, t.dtype);
            vm.assertEq(view_.elements, t.words.length);
            vm.assertEq(view_.end, t.descriptor.length);
            vm.assertEq(Descriptor.leaves(view_.elements), t.leaves.length);
            for (uint256 leaf = 0; leaf < t.leaves.length; ++leaf) {
                vm.assertEq(reader.tagged(TAG_LEAF, NaiveTree.leaf(t.words, leaf)), t.leaves[leaf]);
            }
            vm.assertEq(_tree(t.leaves), t.tree);
            vm.assertEq(reader.tensorRoot(t.descriptor, t.tree), t.root);
        }
    }

    function test_states_traces_and_constants() public view {
        Tensor[] memory tensors = _tensors();
        List[] memory lists = abi.decode(_records(".lists", "List(uint8 tag,uint32[] tensors,bytes32 root)"), (List[]));
        vm.assertGt(lists.length, 0);
        for (uint256 i = 0; i < lists.length; ++i) {
            bytes32[] memory roots = new bytes32[](lists[i].tensors.length);
            for (uint256 j = 0; j < roots.length; ++j) {
                roots[j] = tensors[lists[i].tensors[j]].root;
            }
            vm.assertEq(MerkleBranch.listRoot(lists[i].tag, uint32(roots.length), _tree(roots)), lists[i].root);
        }
    }

    function test_program() public view {
        bytes32 program = vm.parseJsonBytes32(json, ".program.hash");
        Header memory header = reader.header(vm.parseJsonBytes(json, ".program.header"), program);
        bytes[] memory nodes = vm.parseJsonBytesArray(json, ".program.nodes");
        bytes[] memory slots = vm.parseJsonBytesArray(json, ".program.slots");
        vm.assertEq(uint256(header.nodes), nodes.length);
        vm.assertEq(uint256(header.slots), slots.length);
        bytes32[][] memory branches = abi.decode(_records(".program.node_branches", "bytes32[]"), (bytes32[][]));
        vm.assertEq(branches.length, nodes.length);
        for (uint256 i = 0; i < nodes.length; ++i) {
            vm.assertGt(reader.nodeOperands(nodes[i]), 0);
            bytes32 leaf = reader.tagged(TAG_NODE, nodes[i]);
            vm.assertEq(reader.climbIn(leaf, i, branches[i], nodes.length), header.nodesTree);
        }
        branches = abi.decode(_records(".program.slot_branches", "bytes32[]"), (bytes32[][]));
        vm.assertEq(branches.length, slots.length);
        for (uint256 i = 0; i < slots.length; ++i) {
            vm.assertLt(reader.slot(slots[i]).producer, nodes.length);
            bytes32 leaf = reader.tagged(TAG_SLOT, slots[i]);
            vm.assertEq(reader.climbIn(leaf, i, branches[i], slots.length), header.slotsTree);
        }
    }

    /// @dev In two stages, as walks do it: subtrees of height `depth - 4` from the bottom, and the sixteen at the top.
    function _tree(bytes32[] memory leaves) private view returns (bytes32) {
        uint256 depth = MerkleBranch.depth(leaves.length);
        uint256 opened = depth < 4 ? depth : 4;
        uint256 height = depth - opened;
        uint256 width = 2 ** height;
        bytes memory row;
        for (uint256 lo = 0; lo < leaves.length; lo += width) {
            bytes memory below;
            for (uint256 i = lo; i < lo + width && i < leaves.length; ++i) {
                below = abi.encodePacked(below, leaves[i]);
            }
            row = abi.encodePacked(row, reader.root(below, height, 0));
        }
        return reader.root(row, opened, height);
    }

    function _first(bytes32[] memory hashes, uint256 size) private pure returns (bytes32[] memory first) {
        first = new bytes32[](size);
        for (uint256 i = 0; i < size; ++i) {
            first[i] = hashes[i];
        }
    }
}
