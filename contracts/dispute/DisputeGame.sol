// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame, StartParams} from "./IDisputeGame.sol";
import {Clocks} from "./Clock.sol";
import {ClockExpiry} from "./ClockExpiry.sol";
import {DisputeStorage, Reason, Verb} from "./DisputeStorage.sol";
import {IOneStep, Outcome, Picked} from "./IOneStep.sol";
import {IStarts} from "./IStarts.sol";
import {PickedPart} from "./PickedPart.sol";
import {Level, Part, Position, Positions, WITNESS_AT} from "./Position.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";
import {PublishedTrace} from "./PublishedTrace.sol";
import {StepMoves} from "./StepMoves.sol";
import {OpeningSize} from "./OpeningSize.sol";
import {Transition} from "./Transition.sol";

/// @notice A move as it comes in: everything but what its verb reads.
struct Move {
    uint256 number;
    uint256 clock;
    address mover;
    Position position;
    Part part;
    Cursor rest;
}

/// @title DisputeGame
/// @notice Two players and one claim (docs/spec/dispute.md): each move picks the first part of what the other side has
/// opened that the mover disagrees with, and opens the mover's own version of it; a proof ends the dispute.
/// @dev Moves have no declared parameters. Behind the selector come packed bytes: `u32 number || bytes32 frame || u32
/// count || u64 lo || u64 hi || u8 index || witness || rest`; what `rest` is says each move. Moves that break a rule
/// revert, and the clock of the side that cannot move runs out.
contract DisputeGame is IDisputeGame, StepMoves, ClockExpiry {
    using PackedReader for Cursor;

    /// @notice A dispute begins; together with the moves and the program this is all that is needed to rebuild every
    /// position.
    event Started(
        uint256 indexed number,
        address indexed asserter,
        address indexed challenger,
        bytes32 id,
        StartParams params,
        bytes header,
        bytes payload
    );

    /// @notice Only the market starts disputes.
    error NotMarket(address sender);
    /// @notice A number in `StartParams` is outside of what the specification allows.
    error InvalidStart();
    /// @notice What the proof computes is what was claimed.
    error Upheld();
    /// @notice The move has another index than 0, and picks nothing.
    error WrongIndex();
    /// @notice `selector` is no move that can be made for somebody else in this way.
    error NotRelayable(bytes4 selector);
    /// @notice The signature is nobody's.
    error WrongSignature();

    // Used as the bound of slices, where Slither does not look.
    // slither-disable-next-line unused-state
    uint256 private constant SELECTOR_BYTES = 4;
    /// @dev `StartParams`: fourteen words, which stand behind the selector because none is dynamic.
    // slither-disable-next-line unused-state
    uint256 private constant PARAMS_BYTES = 448;
    bytes32 private constant DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant MOVE = keccak256("Move(bytes32 head,bytes32 content)");
    /// @dev Depths of the deepest lists: steps, nodes, data leaves, terms.
    uint256 private constant STEPS_DEPTH = 64;
    uint256 private constant NODES_DEPTH = 31;
    uint256 private constant LEAVES_DEPTH = 25;
    uint256 private constant TERMS_DEPTH = 32;
    uint256 private constant TERMS_WIDTH = 6;

    /// @notice Executes single instructions, chunks of folds, and sums of leaves.
    IOneStep public immutable oneStep;
    /// @notice Knows where disputes begin.
    IStarts public immutable starts;
    /// @dev A grace for each position that the longest dispute can have.
    uint256 private immutable _allGraces;

    /// @param market_ Starts disputes and is told how they end.
    /// @param oneStep_ Executes what proofs show.
    /// @param starts_ Knows where disputes begin.
    /// @param width_ Levels that an opening shows at most: 4 or 5.
    /// @param replayGrace_ Least seconds for an answer to STEPS or to a step's trace.
    /// @param moveGrace_ Least seconds for any other answer.
    constructor(
        address market_,
        IOneStep oneStep_,
        IStarts starts_,
        uint8 width_,
        uint24 replayGrace_,
        uint24 moveGrace_
    ) DisputeStorage(market_, width_, replayGrace_, moveGrace_) {
        if (address(oneStep_) == address(0) || address(starts_) == address(0)) revert ZeroHash();
        oneStep = oneStep_;
        starts = starts_;
        // Positions in which a step or more has to be executed, then all others; each is answered once.
        uint256 replays = OpeningSize.openings(STEPS_DEPTH, width_) + 1;
        uint256 others = OpeningSize.openings(NODES_DEPTH, width_) - 1 + OpeningSize.openings(LEAVES_DEPTH, width_)
            + OpeningSize.openings(TERMS_DEPTH, TERMS_WIDTH) + 2;
        _allGraces = replays * replayGrace_ + others * moveGrace_;
    }

    /// @inheritdoc IDisputeGame
    function start(StartParams calldata params, bytes calldata header, bytes calldata payload)
        external
        returns (uint256 number)
    {
        if (msg.sender != market) revert NotMarket(msg.sender);
        if (params.asserter == address(0) || params.challenger == address(0)) revert ZeroHash();
        if (params.clock == 0 || params.clock > type(uint24).max) revert InvalidStart();
        number = ++disputes;
        // As `abi.encode(chain, game, number, params)`, whose last words stand in the call; the event refuses any that
        // are no encoding.
        bytes calldata encoded = msg.data[SELECTOR_BYTES:SELECTOR_BYTES + PARAMS_BYTES];
        bytes32 id = keccak256(abi.encodePacked(block.chainid, uint256(uint160(address(this))), number, encoded));
        Position memory p = starts.first(params, header, id, payload, width);
        _begin(number, p, params.asserter, params.challenger, params.clock);
        emit Started(number, params.asserter, params.challenger, id, params, header, payload);
    }

    /// @notice Opens what lies below the picked part, as the same level does or the one below it. rest: payload.
    function answer() external {
        _answer(_move(), msg.sender);
    }

    /// @notice Describes the picked node and opens its output. rest: `header || id || constants || end || pre || u64
    /// step || roots || branch || u16 length || descriptor || payload`.
    function describe() external {
        _describe(_move(), msg.sender);
    }

    /// @notice Agrees with a step's trace and opens the state after it. Index 0, no witness; rest: `opening || header
    /// || id || constants
    /// || end || pre || u64 step || payload`.
    function openState() external {
        _openState(_move(), msg.sender);
    }

    /// @notice Shows a node of a whole trace that was published (index 1), or a leaf of its output (index 2), and opens
    /// its own version of it. No witness; rest: `opening || header || id || constants || end || pre || u64 step ||
    /// branch || u16 length || descriptor || u32 node || root || branch || (of a leaf: u64 leaf || leaf hash ||
    /// branch) || payload`.
    function show() external {
        _show(_move(), msg.sender);
    }

    /// @notice Opens the fold of the picked element, or its body. rest: `previous frame || H(descriptor) || u32 node ||
    /// u64 terms || u32 init || u8 instructions || payload`.
    function unfold() external {
        _unfold(_move(), msg.sender);
    }

    /// @notice Opens the body of the picked term. rest: `previous frame || H(descriptor) || u32 node || u64 terms ||
    /// u32 init || u8 instructions || u64 element || payload`.
    function openBody() external {
        _openBody(_move(), msg.sender);
    }

    /// @notice Describes the picked slot and opens the sums of its leaves; wins if its component is not summed up and a
    /// sum was claimed. rest: `header || id || x || y || u8 component || branch || u16 length || descriptor ||
    /// payload`.
    function describeSlot() external {
        _describeSlot(_move(), msg.sender);
    }

    /// @notice Wins by executing the picked element, part of a fold or instruction. rest: facts and openings, see
    /// `IOneStep`.
    function proveStep() external {
        _proveStep(_move(), msg.sender);
    }

    /// @notice Wins by what the trace has at the producer of the picked slot. rest: `header || id || constants || end
    /// || pre || u64 step || trace opening || branch || u16 length || slot descriptor || produced || trace branch`.
    function proveSlot() external {
        _proveSlot(_move(), msg.sender);
    }

    /// @notice Wins by summing up the picked leaf. rest: facts and openings, see `IOneStep`.
    function proveSum() external {
        _proveSum(_move(), msg.sender);
    }

    /// @notice Gives up. Index 0, no witness; rest: opening.
    function resign() external {
        _resign(_move(), msg.sender);
    }

    /// @notice A proof for the side on turn, from anybody: `address of the side on turn || proof with its own
    /// selector`.
    function help() external {
        bytes calldata data = _move();
        bytes calldata proof = data[20 + SELECTOR_BYTES:];
        (address mover, bytes4 selector) = (address(bytes20(data)), bytes4(data[20:]));
        if (!_prove(selector, proof, mover)) revert NotRelayable(selector);
    }

    /// @notice A move that the side on turn has signed, from anybody: `r || s || u8 v || move with its own selector`.
    /// The signature is EIP-712 over `Move(bytes32 head,bytes32 content)`.
    function relay() external {
        bytes calldata data = _move();
        bytes calldata signed = data[65:];
        bytes calldata move = signed[SELECTOR_BYTES:];
        bytes4 selector = bytes4(signed);
        address mover = _signer(data, _at(_number(move)).head, keccak256(signed));
        if (_prove(selector, move, mover)) return;
        if (selector == this.answer.selector) _answer(move, mover);
        else if (selector == this.describe.selector) _describe(move, mover);
        else if (selector == this.openState.selector) _openState(move, mover);
        else if (selector == this.show.selector) _show(move, mover);
        else if (selector == this.unfold.selector) _unfold(move, mover);
        else if (selector == this.openBody.selector) _openBody(move, mover);
        else if (selector == this.describeSlot.selector) _describeSlot(move, mover);
        else if (selector == this.resign.selector) _resign(move, mover);
        else revert NotRelayable(selector);
    }

    /// @inheritdoc IDisputeGame
    function longest(uint32 clock) external view returns (uint256) {
        return 2 * uint256(clock) + _allGraces;
    }

    function _answer(bytes calldata move, address mover) private {
        uint256 number = _number(move);
        uint256 clock = _running(number);
        if (Clocks.level(clock) == Level.STEPS) return _answerSteps(move, mover, number, clock);
        uint256 share = OpeningSize.shareOf(_shares, Clocks.height(clock));
        if (share != Clocks.height(clock)) return _answerSubtree(move, mover, number, clock, share);
        Move memory m = _enter(move, mover, clock);
        _leave(m, Transition.answer(m.position, m.part, Transition.remainder(m.rest), width), Verb.ANSWER);
    }

    function _describe(bytes calldata move, address mover) private {
        Move memory m = _enter(move, mover, _clock(move));
        _leave(m, Transition.describe(m.position, m.part, m.rest, width), Verb.DESCRIBE);
    }

    function _openState(bytes calldata move, address mover) private {
        Move memory m = _enterWhole(move, mover);
        _requireNoPick(m);
        _leave(m, Transition.openState(m.position, m.rest, width), Verb.OPEN_STATE);
    }

    function _show(bytes calldata move, address mover) private {
        Move memory m = _enterWhole(move, mover);
        (Position memory next, bytes calldata shown) = PublishedTrace.show(m.position, m.part.index, m.rest, width);
        _leave(m.number, m.clock, m.mover, next);
        _emitMoved(m.number, Verb.SHOW, uint8(m.part.index), shown);
    }

    function _unfold(bytes calldata move, address mover) private {
        Move memory m = _enter(move, mover, _clock(move));
        _leave(m, Transition.unfold(m.position, m.part, m.rest), Verb.UNFOLD);
    }

    function _openBody(bytes calldata move, address mover) private {
        Move memory m = _enter(move, mover, _clock(move));
        _leave(m, Transition.openBody(m.position, m.part, m.rest), Verb.OPEN_BODY);
    }

    function _describeSlot(bytes calldata move, address mover) private {
        Move memory m = _enter(move, mover, _clock(move));
        (bool isCounted, Position memory next) = Transition.describeSlot(m.position, m.part, m.rest, width);
        if (isCounted) return _leave(m, next, Verb.DESCRIBE_SLOT);
        _refute(m, Verb.DESCRIBE_SLOT, Reason.OTHER_COMPONENT, m.part.claimed, 0);
    }

    /// @dev Whether `selector` is a proof; if so, it has won.
    function _prove(bytes4 selector, bytes calldata proof, address mover) private returns (bool) {
        if (selector == this.proveStep.selector) _proveStep(proof, mover);
        else if (selector == this.proveSlot.selector) _proveSlot(proof, mover);
        else if (selector == this.proveSum.selector) _proveSum(proof, mover);
        else return false;
        return true;
    }

    function _proveStep(bytes calldata move, address mover) private {
        Move memory m = _enter(move, mover, _clock(move));
        Level level = m.position.level;
        if (level != Level.LEAF && level != Level.TERMS && level != Level.BODY) revert Transition.WrongLevel(level);
        bytes calldata values = move[WITNESS_AT:level == Level.BODY ? WITNESS_AT + 4 * m.position.count : WITNESS_AT];
        // No try: a call that runs out of gas must not be taken for a result.
        Outcome memory o = oneStep.execute(_picked(m), values, Transition.remainder(m.rest));
        if (o.computed == o.claimed) revert Upheld();
        emit Refuted(m.number, Verb.PROVE_STEP, abi.encodePacked(o.op, o.a, o.b, o.c, o.claimed, o.computed));
        _win(m, Reason.STEP);
    }

    function _proveSlot(bytes calldata move, address mover) private {
        Move memory m = _enter(move, mover, _clock(move));
        bytes32 produced = Transition.produced(m.position, m.part, m.rest, width);
        _refute(m, Verb.PROVE_SLOT, Reason.SLOT, m.part.claimed, produced);
    }

    function _proveSum(bytes calldata move, address mover) private {
        Move memory m = _enter(move, mover, _clock(move));
        if (m.position.level != Level.SUM_LEAVES || m.part.hi - m.part.lo != 1) {
            revert Transition.WrongLevel(m.position.level);
        }
        uint256 computed = oneStep.sum(_picked(m), Transition.remainder(m.rest));
        _refute(m, Verb.PROVE_SUM, Reason.SUM, m.part.claimed, bytes32(computed));
    }

    function _resign(bytes calldata move, address mover) private {
        Move memory m = _enterWhole(move, mover);
        _requireNoPick(m);
        m.rest.finish();
        _end(m.number, m.clock, !Clocks.isAsserterOnTurn(m.clock), Reason.RESIGNED);
    }

    /// @dev A move that picks a part: its witness leads to the opening at which the dispute stands.
    /// @param clock Of the dispute.
    function _enter(bytes calldata move, address mover, uint256 clock) private view returns (Move memory m) {
        uint256 range = _read(m, move, mover, clock);
        // In STEPS there are answers only.
        if (m.position.level == Level.STEPS) revert Transition.WrongLevel(Level.STEPS);
        PickedPart.read(m.position, m.part, m.rest, width);
        _requireHead(m, range);
    }

    /// @dev A move that picks nothing, and names the opening instead.
    function _enterWhole(bytes calldata move, address mover) private view returns (Move memory m) {
        uint256 range = _read(m, move, mover, _clock(move));
        m.position.opening = m.rest.hash();
        _requireHead(m, range);
    }

    function _requireNoPick(Move memory m) private pure {
        if (m.part.index != 0) revert WrongIndex();
    }

    /// @dev The dispute stands at the move's position, and the mover is on turn.
    function _requireHead(Move memory m, uint256 range) private view {
        bytes32 hash = Positions.headOf(m.position.frame, m.position.opening, m.mover, m.clock, range);
        if (hash != _at(m.number).head) revert WrongHead(m.mover);
    }

    /// @dev What comes before the witness.
    /// @return range Its count, lo and hi, in the highest bits.
    function _read(Move memory m, bytes calldata move, address mover, uint256 clock)
        private
        pure
        returns (uint256 range)
    {
        m.rest.start(move);
        // Only that so many bytes are there: they are read below.
        // slither-disable-next-line unused-return
        m.rest.slice(WITNESS_AT);
        (m.number, m.clock, m.mover) = (_number(move), clock, mover);
        bytes32 frame;
        assembly ("memory-safe") {
            frame := calldataload(add(move.offset, 4))
            // u32 count, u64 lo, u64 hi, u8 index
            range := calldataload(add(move.offset, 36))
        }
        Position memory p = m.position;
        p.level = Clocks.level(clock);
        p.height = Clocks.height(clock);
        p.frame = frame;
        p.count = range >> 224;
        p.lo = uint64(range >> 160);
        p.hi = uint64(range >> 96);
        m.part.index = uint8(range >> 88);
    }

    /// @dev What has not been read is the payload.
    function _leave(Move memory m, Position memory next, Verb verb) private {
        _leave(m.number, m.clock, m.mover, next);
        _emitMoved(m.number, verb, uint8(m.part.index), Transition.remainder(m.rest));
    }

    function _refute(Move memory m, Verb verb, Reason reason, bytes32 claimed, bytes32 computed) private {
        if (computed == claimed) revert Upheld();
        emit Refuted(m.number, verb, abi.encodePacked(claimed, computed));
        _win(m, reason);
    }

    function _win(Move memory m, Reason reason) private {
        _end(m.number, m.clock, Clocks.isAsserterOnTurn(m.clock), reason);
    }

    function _picked(Move memory m) private pure returns (Picked memory picked) {
        (Position memory p, Part memory part) = (m.position, m.part);
        picked.level = uint8(p.level);
        picked.index = uint8(part.index);
        (picked.lo, picked.hi) = (uint64(part.lo), uint64(part.hi));
        picked.agreed = uint32(uint256(part.agreed));
        if (p.level != Level.SUM_LEAVES) picked.claimed = uint32(uint256(part.claimed));
        picked.frame = p.frame;
    }

    /// @dev All behind the selector.
    function _move() private pure returns (bytes calldata) {
        return msg.data[SELECTOR_BYTES:];
    }

    /// @dev The clock of the dispute that a move belongs to; the side on turn may still move.
    function _clock(bytes calldata move) private view returns (uint256) {
        return _running(_number(move));
    }

    /// @dev The dispute that a move belongs to.
    function _number(bytes calldata move) private pure returns (uint256 result) {
        assembly ("memory-safe") {
            result := shr(224, calldataload(move.offset))
        }
    }

    /// @dev Who has signed: `r || s || u8 v` come first in `data`.
    function _signer(bytes calldata data, bytes32 head_, bytes32 content) private view returns (address signer) {
        bytes32 domain =
            keccak256(abi.encode(DOMAIN, keccak256("pol dispute"), keccak256("1"), block.chainid, address(this)));
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", domain, keccak256(abi.encode(MOVE, head_, content))));
        signer = ecrecover(digest, uint8(data[64]), bytes32(data), bytes32(data[32:]));
        if (signer == address(0)) revert WrongSignature();
    }
}
