// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeResolver} from "./IDisputeResolver.sol";
import {Clock, Clocks, Result} from "./Clock.sol";
import {Level, Position, Positions} from "./Position.sol";
import {OpeningSize} from "./OpeningSize.sol";

/// @notice Why a dispute ended.
enum Reason {
    NONE,
    TIMEOUT,
    STEP,
    SLOT,
    SUM,
    OTHER_COMPONENT,
    RESIGNED
}

/// @notice What a move does, as its event and that of a proof say.
enum Verb {
    NONE,
    ANSWER,
    DESCRIBE,
    OPEN_STATE,
    UNFOLD,
    OPEN_BODY,
    DESCRIBE_SLOT,
    PROVE_STEP,
    PROVE_SLOT,
    PROVE_SUM,
    SHOW
}

/// @notice What the chain knows about a dispute.
struct Dispute {
    bytes32 head; // `Positions.head`
    uint256 clock; // `Clocks`
}

/// @title DisputeStorage
/// @notice Heads and clocks: who is on turn, and where. When a clock ends: `ClockExpiry`.
abstract contract DisputeStorage {
    /// @notice A side has moved. The only topic is the number, and the data are no ABI encoding but the bytes
    /// `u8 verb || u8 index || payload`: a topic and the lengths would cost 1,127 gas.
    event Moved(uint256 indexed number, bytes move) anonymous;
    /// @notice A proof refuted what was claimed.
    /// @param detail Of PROVE_STEP `u8 op || u32 a || u32 b || u32 c || u32 claimed || u32 computed`; else the claimed
    /// and the computed hash or sum.
    event Refuted(uint256 indexed number, Verb verb, bytes detail);
    /// @notice The dispute is over.
    event Resolved(uint256 indexed number, bool asserterWon, Reason reason);

    /// @notice A hash or an address that has to mean something is zero.
    error ZeroHash();
    /// @notice There is no dispute `number`.
    error UnknownDispute(uint256 number);
    /// @notice The dispute does not stand at the move's position with this opening, or `mover` is not on turn.
    error WrongHead(address mover);
    /// @notice An opening of this number of levels is not supported.
    error UnsupportedWidth(uint8 width);

    /// @notice Disputes started; they are numbered from 1.
    uint256 public disputes;
    /// @notice Starts disputes and is told how they end.
    address public immutable market;
    /// @notice Levels that an opening shows at most: 4 (16 parts) or 5 (32 parts); fewer for tests of small games.
    uint8 public immutable width;
    /// @notice Seconds in which whoever comes on turn can answer at least, where a segment or a step has to be
    /// executed.
    uint24 public immutable replayGrace;
    /// @notice The same where nothing has to be executed.
    uint24 public immutable moveGrace;

    /// @dev By their numbers, of 32 bits. Two words each from `_disputes.slot` on: a mapping would hash.
    Dispute[2 ** 32] internal _disputes;

    /// @dev Shares of all heights, see `OpeningSize.table`.
    uint256 internal immutable _shares;

    uint8 private constant MAX_WIDTH = 5;

    constructor(address market_, uint8 width_, uint24 replayGrace_, uint24 moveGrace_) {
        if (market_ == address(0)) revert ZeroHash();
        if (width_ == 0 || width_ > MAX_WIDTH) revert UnsupportedWidth(width_);
        market = market_;
        width = width_;
        replayGrace = replayGrace_;
        moveGrace = moveGrace_;
        _shares = OpeningSize.table(width_);
    }

    /// @notice Hash of the position at which a dispute stands, with the side on turn.
    function head(uint256 number) external view returns (bytes32) {
        _existing(number);
        return _at(number).head;
    }

    /// @notice What the chain knows about a dispute.
    function dispute(uint256 number) external view returns (bytes32 head_, Clock memory clock) {
        clock = Clocks.unpack(_existing(number));
        head_ = _at(number).head;
    }

    /// @dev Where a dispute stands; `number_` has 32 bits.
    function _at(uint256 number_) internal pure returns (Dispute storage d) {
        assembly ("memory-safe") {
            d.slot := add(_disputes.slot, shl(1, number_))
        }
    }

    /// @dev The clock of a dispute that there is.
    function _existing(uint256 number) internal view returns (uint256 clock) {
        if (number < _disputes.length) clock = _at(number).clock;
        // Bit by bit zero is no clock: there is always somebody who waits.
        if (clock == 0) revert UnknownDispute(number);
    }

    /// @dev The first position: the asserter is on turn.
    function _begin(uint256 number, Position memory p, address asserter, address challenger, uint256 budget) internal {
        // States of a segment have to be executed; where traces were published, all that lies below has been.
        uint256 grace = p.level == Level.STEPS ? replayGrace : moveGrace;
        if (grace < budget) grace = budget;
        Dispute storage d = _disputes[number];
        d.head = Positions.head(p, asserter);
        d.clock = Clocks.begin(challenger, p.level, p.height, budget, block.timestamp + grace);
    }

    /// @dev The side that waited is on turn at `next`, below STEPS and the top of NODES: what lies there has been
    /// executed.
    function _leave(uint256 number, uint256 clock, address mover, Position memory next) internal {
        Dispute storage d = _at(number);
        d.head = Positions.head(next, Clocks.waiting(clock));
        d.clock = Clocks.press(clock, mover, next.level, next.height, moveGrace);
    }

    /// @dev The event of a move.
    function _emitMoved(uint256 number_, Verb verb, uint8 index, bytes calldata payload) internal {
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore8(data, verb)
            mstore8(add(data, 1), index)
            calldatacopy(add(data, 2), payload.offset, payload.length)
            log1(data, add(payload.length, 2), number_)
        }
    }

    /// @dev The dispute is over.
    function _end(uint256 number, uint256 clock, bool asserterWon, Reason reason) internal {
        _at(number).clock = Clocks.finish(clock, asserterWon ? Result.ASSERTER_WON : Result.CHALLENGER_WON);
        emit Resolved(number, asserterWon, reason);
        IDisputeResolver(market).onResolved(number, asserterWon);
    }
}
