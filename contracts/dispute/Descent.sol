// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Shares} from "./Shares.sol";
import {Subtrees} from "./Subtrees.sol";

/// @title Descent
/// @notice The answer that nearly all moves are: sixteen children of a subtree against sixteen children of a subtree, in NODES,
/// LEAVES and STATE.
/// @dev What it does, `Subtrees` does as well: tests compare them. Here it is written for gas:
/// calldata, storage and the event leave 2,000 gas for everything else (docs/spec/dispute.md, Gas).
abstract contract Descent is Subtrees {
    // Memory. Nothing that Solidity keeps there is alive: `answer` ends the call, or has not written yet.
    /// @dev Two nodes behind the tag of their parent; the places of the nodes differ in bit 5 only.
    uint256 private constant TAG = 0x3f;
    uint256 private constant LEFT = 0x40;
    uint256 private constant RIGHT = 0x60;
    /// @dev The preimage of a head, 106 bytes, of which the first 65 are that of a frame.
    uint256 private constant FRAME = 0x80;
    uint256 private constant OPENING = 0xa0;
    uint256 private constant TURN = 0xc0;
    uint256 private constant TURN_END = 0xb4; // a word that ends with the address
    uint256 private constant LEVEL = 0xd4;
    uint256 private constant RANGE = 0xd6;
    uint256 private constant HEAD_BYTES = 106;
    uint256 private constant FRAME_BYTES = 65;
    /// @dev As TAG, LEFT and RIGHT, for their parents.
    uint256 private constant TAG_2 = 0xf6;
    uint256 private constant LEFT_2 = 0xf7;
    uint256 private constant RIGHT_2 = 0x117;
    /// @dev What is logged: verb and index at the end of a word, then the payload.
    uint256 private constant VERB_AND_INDEX = 0x119;
    uint256 private constant LOGGED = 0x137;
    uint256 private constant PAYLOAD = 0x139;
    uint256 private constant PAYLOAD_BYTES = 0x200;
    /// @dev The byte before each pair of what is opened.
    uint256 private constant PAIR_0 = 0x138;
    uint256 private constant PAIR_1 = 0x178;
    uint256 private constant PAIR_2 = 0x1b8;
    uint256 private constant PAIR_3 = 0x1f8;
    uint256 private constant PAIR_4 = 0x238;
    uint256 private constant PAIR_5 = 0x278;
    uint256 private constant PAIR_6 = 0x2b8;
    uint256 private constant PAIR_7 = 0x2f8;

    // Calldata: selector, u32 number, bytes32 frame; range (u32 count, u64 lo, u64 hi; then u8 index); child, four siblings, payload.
    uint256 private constant NUMBER_AT = 4;
    uint256 private constant FRAME_AT = 8;
    uint256 private constant RANGE_AT = 40;
    uint256 private constant CHILD_AT = 61;
    uint256 private constant SIBLING_0_AT = 93;
    uint256 private constant SIBLING_1_AT = 125;
    uint256 private constant SIBLING_2_AT = 157;
    uint256 private constant SIBLING_3_AT = 189;
    uint256 private constant PAYLOAD_AT = 221;
    uint256 private constant CALL_BYTES = 733;
    /// @dev Of the range in the highest bits of a word.
    uint256 private constant COUNT_BIT = 224;
    uint256 private constant LO_BIT = 160;
    uint256 private constant COUNT_BITS = 32;
    uint256 private constant INDEX_BYTE = 20;

    // A clock, see `Clocks`.
    uint256 private constant LEVEL_BYTE = 20;
    uint256 private constant HEIGHT_BYTE = 21;
    uint256 private constant ADDRESS_BITS = 160;
    uint256 private constant LEVEL_AND_TURN = (0xff << 88) | (0xff << 72);
    uint256 private constant TURN_UNIT = 1 << 72;
    uint256 private constant HEIGHT_BIT = 80;
    uint256 private constant SPARE_BIT = 40;
    uint256 private constant SPARE = (1 << 24) - 1;
    uint256 private constant DEADLINE = (1 << 40) - 1;

    uint256 private constant LEVEL_NODES = 2;
    uint256 private constant LEVEL_LEAVES = 3;
    /// @dev Levels that lie open, and that are opened.
    uint256 private constant SHARE = 4;
    uint256 private constant SIXTEEN = 16;
    uint256 private constant ANSWER = 1 << 8;
    /// @dev Selectors of `WrongHead` and `Payloads.Agreed`: inline assembly takes numbers only.

    uint256 private constant WRONG_HEAD = 0x2835bb7b;
    uint256 private constant AGREED = 0xe3522192;

    /// @dev Bits 0 to 31: the heights of which 4 levels lie open, and of the children 4 levels too. Above them `moveGrace`: one word,
    /// for the stack's sake.
    uint256 private immutable _heightsAndGrace;
    uint256 private constant GRACE_BIT = 32;

    constructor() {
        uint256 heights = 0;
        for (uint256 height = SHARE; height <= Shares.MAX_HEIGHT; ++height) {
            bool isWhole = Shares.shareOf(_shares, height) == SHARE && Shares.shareOf(_shares, height - SHARE) == SHARE;
            if (isWhole) heights |= 1 << height;
        }
        _heightsAndGrace = (uint256(moveGrace) << GRACE_BIT) | heights;
    }

    /// @notice Opens what lies below the picked part, as the same level does or the one below it. rest: payload.
    /// @dev Sixteen children below child `index` of sixteen are answered here. Any other move, and one that comes too late, is left to
    /// the general rules, which say what is wrong with it.
    function answer() external {
        uint256 heightsAndGrace = _heightsAndGrace;
        assembly {
            // The dispute's head and clock lie at `slot`.
            mstore(0, shr(224, calldataload(NUMBER_AT)))
            mstore(32, _disputes.slot)
            let slot := keccak256(0, 64)
            let clock := sload(add(slot, 1))
            let below := sub(byte(HEIGHT_BYTE, clock), SHARE)
            // The child's range: `lo` moves by `index` subtrees.
            let range := calldataload(RANGE_AT)
            let next := add(range, shl(add(LO_BIT, below), byte(INDEX_BYTE, range)))
            let isWhole := shr(COUNT_BIT, range)
            if eq(byte(LEVEL_BYTE, clock), LEVEL_LEAVES) { isWhole := shr(6, add(isWhole, 63)) }
            // Of the sixteen children that are opened the last one begins inside of the tree.
            isWhole := lt(add(shr(192, shl(COUNT_BITS, next)), shl(sub(below, SHARE), 15)), isWhole)
            if and(
                and(isWhole, and(shr(byte(HEIGHT_BYTE, clock), heightsAndGrace), eq(calldatasize(), CALL_BYTES))),
                and(lt(byte(INDEX_BYTE, range), SIXTEEN), lt(timestamp(), and(clock, DEADLINE)))
            ) {
                // The opening: the child and its siblings from the bottom up; bit i of the index says where they stand.
                mstore8(TAG, 1)
                let index := byte(INDEX_BYTE, range)
                let place := or(LEFT, and(shl(5, index), 32))
                mstore(place, calldataload(CHILD_AT))
                mstore(xor(place, 32), calldataload(SIBLING_0_AT))
                place := or(LEFT, and(shl(4, index), 32))
                mstore(place, keccak256(TAG, 65))
                mstore(xor(place, 32), calldataload(SIBLING_1_AT))
                place := or(LEFT, and(shl(3, index), 32))
                mstore(place, keccak256(TAG, 65))
                mstore(xor(place, 32), calldataload(SIBLING_2_AT))
                place := or(LEFT, and(shl(2, index), 32))
                mstore(place, keccak256(TAG, 65))
                mstore(xor(place, 32), calldataload(SIBLING_3_AT))
                // The head: the dispute stands there, with the caller on turn.
                // Words overlap: each is
                // followed by those that overwrite what is too much of it.
                mstore(TURN, clock)
                mstore(RANGE, range)
                mstore(TURN_END, caller())
                mstore(OPENING, keccak256(TAG, 65))
                mstore(FRAME, calldataload(FRAME_AT))
                let isWrong := xor(keccak256(FRAME, HEAD_BYTES), sload(slot))
                // The event.
                mstore(VERB_AND_INDEX, or(ANSWER, index))
                calldatacopy(PAYLOAD, PAYLOAD_AT, PAYLOAD_BYTES)
                log1(LOGGED, add(PAYLOAD_BYTES, 2), mload(0))
                // What is opened: the byte before each pair, which is no longer needed, becomes the tag of its parent. Parents
                // are hashed as soon as they stand behind their tag.
                mstore8(TAG_2, 1)
                mstore8(PAIR_0, 1)
                mstore(LEFT, keccak256(PAIR_0, 65))
                mstore8(PAIR_1, 1)
                mstore(RIGHT, keccak256(PAIR_1, 65))
                mstore(LEFT_2, keccak256(TAG, 65))
                mstore8(PAIR_2, 1)
                mstore(LEFT, keccak256(PAIR_2, 65))
                mstore8(PAIR_3, 1)
                mstore(RIGHT, keccak256(PAIR_3, 65))
                mstore(RIGHT_2, keccak256(TAG, 65))
                let half := keccak256(TAG_2, 65)
                mstore8(PAIR_4, 1)
                mstore(LEFT, keccak256(PAIR_4, 65))
                mstore8(PAIR_5, 1)
                mstore(RIGHT, keccak256(PAIR_5, 65))
                mstore(LEFT_2, keccak256(TAG, 65))
                mstore8(PAIR_6, 1)
                mstore(LEFT, keccak256(PAIR_6, 65))
                mstore8(PAIR_7, 1)
                mstore(RIGHT, keccak256(PAIR_7, 65))
                mstore(RIGHT_2, keccak256(TAG, 65))
                mstore(LEFT, half)
                mstore(RIGHT, keccak256(TAG_2, 65))
                let root := keccak256(TAG, 65)
                if or(isWrong, eq(root, calldataload(CHILD_AT))) {
                    if isWrong {
                        mstore(0, WRONG_HEAD)
                        mstore(32, caller())
                        revert(28, 36)
                    }
                    mstore(0, AGREED)
                    revert(28, 4)
                }
                // The next frame, head and clock.
                if eq(byte(LEVEL_BYTE, clock), LEVEL_NODES) {
                    mstore(TURN, shl(168, clock))
                    mstore(FRAME, keccak256(FRAME, FRAME_BYTES))
                }
                let budget := and(shr(SPARE_BIT, clock), SPARE)
                if lt(budget, shr(GRACE_BIT, heightsAndGrace)) { budget := shr(GRACE_BIT, heightsAndGrace) }
                budget := or(
                    or(shl(HEIGHT_BIT, below), xor(and(clock, LEVEL_AND_TURN), TURN_UNIT)),
                    or(shl(SPARE_BIT, sub(and(clock, DEADLINE), timestamp())), add(timestamp(), budget))
                )
                mstore(OPENING, root)
                mstore(TURN, clock)
                mstore(LEVEL, shl(ADDRESS_BITS, budget))
                mstore(RANGE, next)
                sstore(slot, keccak256(FRAME, HEAD_BYTES))
                sstore(add(slot, 1), or(shl(96, caller()), budget))
                stop()
            }
        }
        _answer(_move(), msg.sender);
    }

    /// @dev An answer of any kind, by the general rules.
    /// @param move From its number on.
    function _answer(bytes calldata move, address mover) internal virtual;

    /// @dev All behind the selector.
    function _move() internal pure returns (bytes calldata move) {
        assembly ("memory-safe") {
            move.offset := 4
            move.length := sub(calldatasize(), 4)
        }
    }
}
