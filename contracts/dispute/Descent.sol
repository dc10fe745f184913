// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Segments} from "./Segments.sol";
import {Shares} from "./Shares.sol";

/// @title Descent
/// @notice The answers that nearly all moves are: eight or sixteen children of a subtree against eight or sixteen children of a subtree,
/// in NODES, LEAVES and STATE; and sixteen children of a step's trace against one of five to eight steps.
/// @dev What it does, `Subtrees` and `Segments` do as well: tests compare them. Here it is written for gas:
/// calldata, storage and the event leave 2,000 gas for everything else (docs/spec/dispute.md, Gas).
abstract contract Descent is Segments {
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
    /// @dev As TAG, LEFT and RIGHT, for their parents.
    uint256 private constant TAG_2 = 0xf6;
    uint256 private constant LEFT_2 = 0xf7;
    uint256 private constant RIGHT_2 = 0x117;
    /// @dev What is logged: verb and index at the end of a word, then the payload.
    uint256 private constant VERB_AND_INDEX = 0x119;
    uint256 private constant LOGGED = 0x137;
    uint256 private constant PAYLOAD = 0x139;
    /// @dev The byte before each pair of what is opened.
    uint256 private constant PAIR_0 = 0x138;
    uint256 private constant PAIR_1 = 0x178;
    uint256 private constant PAIR_2 = 0x1b8;
    uint256 private constant PAIR_3 = 0x1f8;
    uint256 private constant PAIR_4 = 0x238;
    uint256 private constant PAIR_5 = 0x278;
    uint256 private constant PAIR_6 = 0x2b8;
    uint256 private constant PAIR_7 = 0x2f8;

    // Calldata: selector, u32 number, bytes32 frame; range (u32 count, u64 lo, u64 hi; then u8 index).
    uint256 private constant NUMBER_AT = 4;
    uint256 private constant NUMBER_BIT = 224;
    uint256 private constant CALL_FRAME_AT = 8;
    uint256 private constant CALL_RANGE_AT = 40;
    /// @dev In a subtree: child, three or four siblings, payload.
    uint256 private constant CHILD_AT = 61;
    uint256 private constant SIBLING_0_AT = 93;
    uint256 private constant SIBLING_1_AT = 125;
    uint256 private constant SIBLING_2_AT = 157;
    uint256 private constant SIBLING_3_AT = 189;
    /// @dev In STEPS: the state roots before and after the picked step, three siblings, sixteen roots.
    uint256 private constant BEFORE_AT = 61;
    uint256 private constant AFTER_AT = 93;
    uint256 private constant STEP_SIBLING_0_AT = 125;
    uint256 private constant STEP_SIBLING_1_AT = 157;
    uint256 private constant STEP_SIBLING_2_AT = 189;
    uint256 private constant ROW_AT = 221;
    uint256 private constant ROW_BYTES = 512;
    uint256 private constant STEP_CALL_BYTES = 733;
    /// @dev Of the range in the highest bits of a word.
    uint256 private constant COUNT_MASK = 0xffffffff << 224;
    uint256 private constant COUNT_BITS = 32;
    uint256 private constant INDEX_BYTE = 20;
    uint256 private constant COUNT_AND_LO_BITS = 96;
    /// @dev A u64 in the highest bits of a word.
    uint256 private constant U64_BIT = 192;

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
    /// @dev Makes STEPS, which is 1, NODES, which is 2, and turns.
    uint256 private constant ENTER_AND_TURN = (3 << 88) | (1 << 72);

    uint256 private constant ANSWER = 1 << 8;
    /// @dev Selectors of `WrongHead` and `Payloads.Agreed`: inline assembly takes numbers only.
    uint256 private constant WRONG_HEAD = 0x2835bb7b;
    uint256 private constant AGREED = 0xe3522192;
    uint256 private constant FRAME_BYTES = 65;

    uint256 private constant LEVEL_STEPS = 1;
    uint256 private constant LEVEL_NODES = 2;
    uint256 private constant LEVEL_LEAVES = 3;
    /// @dev Byte i, counted from the highest one, is the number of bits of i, for i below 32.
    uint256 private constant BITS = 0x0001020203030303040404040404040405050505050505050505050505050505;

    /// @dev Levels of a trace that are opened.
    uint256 private constant SHARE = 4;
    /// @dev Bits 0 to 31: the heights of trees of which 4 levels are opened. Above them `moveGrace`, above that `replayGrace`: one word,
    /// for the stack's sake.
    uint256 private immutable _graces;
    uint256 private constant MOVE_GRACE_BIT = 32;
    uint256 private constant REPLAY_GRACE_BIT = 56;

    /// @dev Byte h, counted from the highest one, is of height h: in the lowest three bits the levels that lie open, above them those
    /// that are opened below. Where either is neither 3 nor 4 it stands for more than a call can hold.
    uint256 private immutable _opened;
    uint256 private constant OPENED_BIT = 3;
    uint256 private constant SHARE_BITS = 7;
    uint256 private constant OPENED_OTHERWISE = 31 << OPENED_BIT;

    constructor() {
        uint256 table = 0;
        uint256 heights = 0;
        for (uint256 height = 0; height <= Shares.MAX_HEIGHT; ++height) {
            uint256 share = Shares.shareOf(_shares, height);
            uint256 opened = Shares.shareOf(_shares, height - share);
            bool isFast = (share == 3 || share == 4) && (opened == 3 || opened == 4);
            table = (table << 8) | (isFast ? share | (opened << OPENED_BIT) : OPENED_OTHERWISE);
            if (share == SHARE) heights |= 1 << height;
        }
        _opened = table;
        _graces = (uint256(moveGrace) << MOVE_GRACE_BIT) | (uint256(replayGrace) << REPLAY_GRACE_BIT) | heights;
    }

    /// @notice Opens what lies below the picked part, as the same level does or the one below it. rest: payload.
    /// @dev Eight or sixteen children below one of eight or sixteen, and sixteen of a trace, are answered here. Any other move, and one that comes too late, is
    /// left to the general rules, which say what is wrong with it.
    function answer() external {
        uint256 opened = _opened;
        uint256 graces = _graces;
        assembly {
            // The dispute's head and clock lie at `slot`.
            let slot := add(_disputes.slot, shl(1, shr(NUMBER_BIT, calldataload(NUMBER_AT))))
            let clock := sload(add(slot, 1))
            if eq(byte(LEVEL_BYTE, clock), LEVEL_STEPS) {
                let range := calldataload(CALL_RANGE_AT)
                let index := byte(INDEX_BYTE, range)
                let lo := shr(U64_BIT, shl(COUNT_BITS, range))
                let steps := sub(shr(U64_BIT, shl(COUNT_AND_LO_BITS, range)), lo)
                // As `MerkleBranch.depth` of the nodes: bits of their number less one, of which there are 31 at most.
                let place := sub(shr(COUNT_BIT, range), 1)
                let height := shl(4, lt(0x7fff, place))
                let digit := shr(height, place)
                let shift := mul(5, add(lt(0x1f, digit), lt(0x3ff, digit)))
                height := add(height, add(shift, byte(shr(shift, digit), BITS)))
                if and(
                    and(
                        // Of the children that are opened the last one begins inside of the tree.
                        and(shr(height, graces), eq(shr(sub(height, SHARE), place), 15)),
                        // Up to eight steps are parts of their own.
                        and(lt(sub(steps, 5), 4), lt(index, steps))
                    ),
                    and(eq(calldatasize(), STEP_CALL_BYTES), lt(timestamp(), and(clock, DEADLINE)))
                ) {
                    // The opening: the step and its siblings from the bottom up; bit i of the index says where they stand.
                    mstore8(TAG, 1)
                    calldatacopy(LEFT, BEFORE_AT, 64)
                    place := or(LEFT, and(shl(5, index), 32))
                    mstore(place, keccak256(LEFT, 64))
                    mstore(xor(place, 32), calldataload(STEP_SIBLING_0_AT))
                    place := or(LEFT, and(shl(4, index), 32))
                    mstore(place, keccak256(TAG, 65))
                    mstore(xor(place, 32), calldataload(STEP_SIBLING_1_AT))
                    place := or(LEFT, and(shl(3, index), 32))
                    mstore(place, keccak256(TAG, 65))
                    mstore(xor(place, 32), calldataload(STEP_SIBLING_2_AT))
                    // The head: the dispute stands there, with the caller on turn. Words overlap: each is followed by those that
                    // overwrite what is too much of it.
                    mstore(TURN, clock)
                    mstore(RANGE, range)
                    mstore(TURN_END, caller())
                    mstore(OPENING, keccak256(TAG, 65))
                    mstore(FRAME, calldataload(CALL_FRAME_AT))
                    if xor(keccak256(FRAME, HEAD_BYTES), sload(slot)) {
                        mstore(0, WRONG_HEAD)
                        mstore(32, caller())
                        revert(28, 36)
                    }
                    // The event.
                    mstore(VERB_AND_INDEX, or(ANSWER, index))
                    calldatacopy(PAYLOAD, ROW_AT, ROW_BYTES)
                    log1(LOGGED, add(ROW_BYTES, 2), shr(NUMBER_BIT, calldataload(NUMBER_AT)))
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
                    let root := keccak256(TAG_2, 65)
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
                    mstore(LEFT, root)
                    mstore(RIGHT, keccak256(TAG_2, 65))
                    root := keccak256(TAG, 65)
                    // The frame of the step: the base and the state after it, then the state before it and its number.
                    mstore(OPENING, calldataload(AFTER_AT))
                    mstore(FRAME, keccak256(FRAME, 64))
                    mstore(OPENING, calldataload(BEFORE_AT))
                    mstore(TURN, shl(U64_BIT, add(lo, index)))
                    mstore(FRAME, keccak256(FRAME, 72))
                    // The next head and clock.
                    let budget := and(shr(SPARE_BIT, clock), SPARE)
                    if lt(budget, shr(REPLAY_GRACE_BIT, graces)) { budget := shr(REPLAY_GRACE_BIT, graces) }
                    budget := or(
                        or(shl(HEIGHT_BIT, height), xor(and(clock, LEVEL_AND_TURN), ENTER_AND_TURN)),
                        or(shl(SPARE_BIT, sub(and(clock, DEADLINE), timestamp())), add(timestamp(), budget))
                    )
                    mstore(OPENING, root)
                    mstore(TURN, clock)
                    mstore(LEVEL, shl(ADDRESS_BITS, budget))
                    mstore(RANGE, and(range, COUNT_MASK))
                    sstore(slot, keccak256(FRAME, HEAD_BYTES))
                    sstore(add(slot, 1), or(shl(96, caller()), budget))
                    stop()
                }
            }
            // Levels that lie open, and that are opened.
            opened := byte(byte(HEIGHT_BYTE, clock), opened)
            let share := and(opened, SHARE_BITS)
            let below := sub(byte(HEIGHT_BYTE, clock), share)
            opened := shr(OPENED_BIT, opened)
            // The child's range: `lo` moves by `index` subtrees.
            let range := calldataload(CALL_RANGE_AT)
            let index := byte(INDEX_BYTE, range)
            let next := add(range, shl(add(LO_BIT, below), index))
            let place := shr(COUNT_BIT, range)
            if eq(byte(LEVEL_BYTE, clock), LEVEL_LEAVES) { place := shr(6, add(place, 63)) }
            // Of the children that are opened the last one begins inside of the tree.
            place := lt(add(shr(U64_BIT, shl(COUNT_BITS, next)), sub(shl(below, 1), shl(sub(below, opened), 1))), place)
            if and(
                and(place, lt(timestamp(), and(clock, DEADLINE))),
                iszero(
                    or(xor(calldatasize(), add(SIBLING_0_AT, shl(5, add(share, shl(opened, 1))))), shr(share, index))
                )
            ) {
                // The opening: the child and its siblings from the bottom up; bit i of the index says where they stand.
                mstore8(TAG, 1)
                place := or(LEFT, and(shl(5, index), 32))
                mstore(place, calldataload(CHILD_AT))
                mstore(xor(place, 32), calldataload(SIBLING_0_AT))
                place := or(LEFT, and(shl(4, index), 32))
                mstore(place, keccak256(TAG, 65))
                mstore(xor(place, 32), calldataload(SIBLING_1_AT))
                place := or(LEFT, and(shl(3, index), 32))
                mstore(place, keccak256(TAG, 65))
                mstore(xor(place, 32), calldataload(SIBLING_2_AT))
                if eq(share, 4) {
                    place := or(LEFT, and(shl(2, index), 32))
                    mstore(place, keccak256(TAG, 65))
                    mstore(xor(place, 32), calldataload(SIBLING_3_AT))
                }
                // The head: the dispute stands there, with the caller on turn. Words overlap: each is followed by those that
                // overwrite what is too much of it.
                mstore(TURN, clock)
                mstore(RANGE, range)
                mstore(TURN_END, caller())
                mstore(OPENING, keccak256(TAG, 65))
                mstore(FRAME, calldataload(CALL_FRAME_AT))
                let isWrong := xor(keccak256(FRAME, HEAD_BYTES), sload(slot))
                // The event.
                mstore(VERB_AND_INDEX, or(ANSWER, index))
                place := shl(opened, 32)
                calldatacopy(PAYLOAD, sub(calldatasize(), place), place)
                log1(LOGGED, add(place, 2), shr(NUMBER_BIT, calldataload(NUMBER_AT)))
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
                let root := keccak256(TAG_2, 65)
                if eq(opened, 4) {
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
                    mstore(LEFT, root)
                    mstore(RIGHT, keccak256(TAG_2, 65))
                    root := keccak256(TAG, 65)
                }
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
                graces := and(shr(MOVE_GRACE_BIT, graces), SPARE)
                if lt(budget, graces) { budget := graces }
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
