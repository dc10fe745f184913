// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice The part of an opening that a proof refutes.
struct Picked {
    uint8 level; // LEAF, TERMS, BODY or SUM_LEAVES: what the part is of
    uint8 index; // BODY: the instruction
    uint64 lo; // LEAF: the element. TERMS: first term of the part. SUM_LEAVES: the leaf
    uint64 hi; // TERMS: end of the part
    uint32 agreed; // TERMS: the accumulator before the part
    uint32 claimed; // the word, accumulator or result that the other side has opened
    bytes32 frame; // what both sides agree on
}

/// @notice A primitive on words, what was claimed that it yields, and what it yields. Of a chunk only the last two are
/// set.
struct Outcome {
    uint8 op;
    uint32 a;
    uint32 b;
    uint32 c;
    uint32 claimed;
    uint32 computed;
}

/// @title IOneStep
/// @notice What proofs end in: an instruction, a chunk of a fold or a leaf's distance, computed from words that both
/// sides are bound to.
/// @dev Stateless. Reverts if anything that is shown is not what the frame commits to, or if bytes are missing or left
/// over.
interface IOneStep {
    /// @notice The facts are not those that both sides agree on.
    error WrongFacts(bytes32 frame);
    /// @notice A proof of this kind cannot end what is picked at level `level`.
    error NotProvable(uint8 level);
    /// @notice `values` are not one result for each instruction; from other levels than BODY, they are not empty.
    error WrongValues();
    /// @notice The first byte says neither that the constants are shown nor that they are not.
    error InvalidFlag(uint256 flag);
    /// @notice An input is of no known kind, or names something that the node does not have.
    error InvalidInput(uint256 register);
    /// @notice The body is not `acc = fma(operand, operand, acc)`.
    error NotAProduct();

    /// @notice Executes the picked instruction or chunk (docs/spec/dispute.md, proveStep).
    /// @param picked From LEAF, TERMS or BODY.
    /// @param values From BODY the results of all instructions, as opened; else empty.
    /// @param rest Facts and openings.
    function execute(Picked calldata picked, bytes calldata values, bytes calldata rest)
        external
        view
        returns (Outcome memory);

    /// @notice Distance of one leaf of a slot (docs/spec/dispute.md, proveSum).
    /// @param picked From SUM_LEAVES.
    /// @param rest Facts and openings.
    function sum(Picked calldata picked, bytes calldata rest) external view returns (uint256 computed);
}
