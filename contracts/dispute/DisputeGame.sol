// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LEAF_WORDS, MerkleBranch, TAG_STATE, TAG_TRACE} from "../commitments/MerkleBranch.sol";
import {IDisputeGame, KIND_DISTANCE, KIND_REFERENCE, KIND_REPLAY, StartParams} from "../interfaces/IDisputeGame.sol";
import {IDisputeResolver} from "../interfaces/IDisputeResolver.sol";
import {Clock, Clocks, PackedClock, Side} from "./Clock.sol";
import {Descriptor, Header, SlotView} from "./Descriptor.sol";
import {Distance} from "./Distance.sol";
import {IOneStep, Outcome} from "./IOneStep.sol";
import {Opening, Openings, Place} from "./Opening.sol";
import {copyPosition, hashPosition, Level, Position} from "./Position.sol";
import {Walk} from "./Walk.sol";

/// @notice Why a dispute ended.
enum Reason {
    NONE,
    TIMEOUT,
    STEP,
    SLOT,
    SUM,
    OTHER_COMPONENT
}

/// @notice That a slot of the claimed state holds what its node produced.
struct SlotProof {
    bytes header;
    bytes descriptor; // of the slot
    bytes32[] descriptorBranch; // in the program's tree of slots
    bytes32[] traceBranch; // of the slot's root, at its producer in the trace
}

/// @notice What the chain knows about a dispute.
struct Dispute {
    bytes32 position; // hash of the position
    PackedClock clock;
    address asserter;
    address challenger;
    bytes32 program;
    bytes32 constants;
    bytes32 context;
}

/// @title DisputeGame
/// @notice Players, clocks and storage around the rules of `Walk`: asserter opens, challenger picks, the chain decides what is left.
/// @dev Every move carries the position as it stands; storage keeps its hash. Events carry the moves. All rules that are broken
/// revert, and the clock of the side that cannot move runs out.
contract DisputeGame is IDisputeGame {
    using Openings for Opening;

    /// @notice A dispute begins; together with the moves this is all that is needed to rebuild the position.
    event Started(
        uint256 indexed id, address indexed asserter, address indexed challenger, bytes header, StartParams params
    );
    /// @notice The asserter opened.
    event Opened(uint256 indexed id, bytes payload);
    /// @notice The challenger picked part `index` of what was opened last.
    event Picked(uint256 indexed id, uint256 index);
    /// @notice The challenger agrees with the trace and disagrees with the state after it.
    event StatePicked(uint256 indexed id);
    /// @notice The asserter described the disputed node, whose output has this tree. All else follows from the program.
    event Described(uint256 indexed id, bytes32 tree);
    /// @notice The asserter described the disputed slot. All follows from the program.
    event SlotDescribed(uint256 indexed id);
    /// @notice The chain executed the disputed instruction.
    event StepProved(uint256 indexed id, uint8 op, uint32 a, uint32 b, uint32 c, uint32 claimed, uint32 computed);
    /// @notice The chain added up the disputed leaf.
    event SumProved(uint256 indexed id, uint256 claimed, uint256 computed);
    /// @notice The dispute is over.
    event Resolved(uint256 indexed id, Side winner, Reason reason);

    /// @notice Only the market starts disputes.
    error NotMarket(address sender);
    /// @notice A hash or an address that has to mean something is zero.
    error ZeroHash();
    /// @notice A number in `StartParams` is outside of what the specification allows.
    error InvalidStart();
    /// @notice There is no dispute `id`.
    error UnknownDispute(uint256 id);
    /// @notice Dispute `id` has a winner.
    error Finished(uint256 id);
    /// @notice It is the other side's turn, or `sender` does not play.
    error NotOnTurn(address sender);
    /// @notice The side on turn may still move, until before `deadline`.
    error NotExpired(uint256 deadline);
    /// @notice `position` is not where the dispute stands.
    error StalePosition(bytes32 position);
    /// @notice The slot does not hold what its producer yielded.
    error WrongSlot();

    uint256 private constant COMPONENTS = 3;

    /// @notice Starts disputes and is told how they end.
    address public immutable market;
    /// @notice Executes single instructions.
    IOneStep public immutable oneStep;
    /// @notice Disputes started; their ids count from 1.
    uint256 public count;

    mapping(uint256 id => Dispute) private _disputes;

    /// @param market_ Starts disputes and is told how they end.
    /// @param oneStep_ Executes single instructions.
    constructor(address market_, IOneStep oneStep_) {
        if (market_ == address(0) || address(oneStep_) == address(0)) revert ZeroHash();
        market = market_;
        oneStep = oneStep_;
    }

    /// @inheritdoc IDisputeGame
    function start(StartParams calldata params, bytes calldata header) external returns (uint256 id) {
        if (msg.sender != market) revert NotMarket(msg.sender);
        Position memory p = _first(params, Descriptor.header(header, params.program));
        id = ++count;
        Dispute storage d = _disputes[id];
        d.position = hashPosition(p);
        d.clock = Clocks.pack(Clock(Side.ASSERTER, Side.NONE, params.clock, params.clock, uint64(block.timestamp)));
        d.asserter = params.asserter;
        d.challenger = params.challenger;
        d.program = params.program;
        d.constants = params.constants;
        d.context = params.context;
        emit Started(id, params.asserter, params.challenger, header, params);
    }

    /// @notice The asserter shows what lies under the disputed commitment.
    /// @param id The dispute.
    /// @param position Where it stands.
    /// @param payload Hashes, sums, words or bytes, as the level asks for.
    function open(uint256 id, Position calldata position, bytes calldata payload) external {
        (Dispute storage d, PackedClock clock, Position memory p) = _enter(id, position, Side.ASSERTER);
        Walk.open(p, payload, p.level == Level.STATE ? d.program : bytes32(0));
        _leave(d, clock, p, Side.CHALLENGER);
        emit Opened(id, payload);
    }

    /// @notice The challenger names the first part that it disagrees with.
    /// @param id The dispute.
    /// @param position Where it stands.
    /// @param index The part.
    /// @param payload What was opened (without the header on STATE); empty on BODY.
    function pick(uint256 id, Position calldata position, uint256 index, bytes calldata payload) external {
        (Dispute storage d, PackedClock clock, Position memory p) = _enter(id, position, Side.CHALLENGER);
        Walk.pick(p, index, payload);
        _leave(d, clock, p, Side.ASSERTER);
        emit Picked(id, index);
    }

    /// @notice The challenger agrees with the trace of the step, but not with the state that is claimed after it.
    /// @param id The dispute.
    /// @param position Where it stands.
    function pickState(uint256 id, Position calldata position) external {
        (Dispute storage d, PackedClock clock, Position memory p) = _enter(id, position, Side.CHALLENGER);
        Walk.pickState(p);
        _leave(d, clock, p, Side.ASSERTER);
        emit StatePicked(id);
    }

    /// @notice The asserter shows the disputed node's descriptor and the tree of its output; it stays on turn.
    /// @param id The dispute.
    /// @param position Where it stands.
    /// @param branch Of the descriptor, in the program's tree of nodes.
    /// @param descriptor The node's.
    /// @param tree Root over the leaves of the claimed tensor.
    function describe(
        uint256 id,
        Position calldata position,
        bytes32[] calldata branch,
        bytes calldata descriptor,
        bytes32 tree
    ) external {
        (Dispute storage d, PackedClock clock, Position memory p) = _enter(id, position, Side.ASSERTER);
        Walk.describe(p, branch, descriptor, tree);
        _leave(d, clock, p, Side.ASSERTER);
        emit Described(id, tree);
    }

    /// @notice The asserter shows which slot a disputed sum belongs to; it stays on turn, or the dispute ends.
    /// @param id The dispute.
    /// @param position Where it stands.
    /// @param header The program's header.
    /// @param branch Of the descriptor, in the program's tree of slots.
    /// @param descriptor The slot's.
    function describeSlot(
        uint256 id,
        Position calldata position,
        bytes calldata header,
        bytes32[] calldata branch,
        bytes calldata descriptor
    ) external {
        (Dispute storage d, PackedClock clock, Position memory p) = _enter(id, position, Side.ASSERTER);
        if (Walk.describeSlot(p, Descriptor.header(header, d.program), branch, descriptor)) {
            _leave(d, clock, p, Side.ASSERTER);
            emit SlotDescribed(id);
        } else {
            _resolve(id, d, clock, p.claimed == 0, Reason.OTHER_COMPONENT);
        }
    }

    /// @notice The asserter supplies the operands of the disputed instruction; the chain executes it and decides.
    /// @param id The dispute.
    /// @param position Where it stands.
    /// @param descriptor The node's.
    /// @param values Results of all instructions as opened; empty for a body of one instruction.
    /// @param openings One for each word read, in the order in which registers a, b and c first need them.
    function proveStep(
        uint256 id,
        Position calldata position,
        bytes calldata descriptor,
        bytes calldata values,
        Opening[] calldata openings
    ) external {
        (Dispute storage d, PackedClock clock, Position memory p) = _enter(id, position, Side.ASSERTER);
        if (p.level != Level.ONE_STEP) revert Walk.WrongLevel(p.level);
        // No try: a call that runs out of gas must not be taken for a result.
        Outcome memory o = oneStep.execute(position, d.constants, descriptor, values, openings);
        emit StepProved(id, o.op, o.a, o.b, o.c, o.claimed, o.computed);
        _resolve(id, d, clock, o.claimed == o.computed, Reason.STEP);
    }

    /// @notice The asserter shows that the disputed slot holds what its node produced, and wins.
    /// @param id The dispute.
    /// @param position Where it stands.
    /// @param proof What does not open reverts.
    function proveSlot(uint256 id, Position calldata position, SlotProof calldata proof) external {
        (Dispute storage d, PackedClock clock, Position memory p) = _enter(id, position, Side.ASSERTER);
        if (p.level != Level.SLOT) revert Walk.WrongLevel(p.level);
        Header memory header = Descriptor.header(proof.header, d.program);
        SlotView memory slot = Walk.slotAt(header, p.element, proof.descriptorBranch, proof.descriptor);
        bytes32 tree = MerkleBranch.climbIn(p.claimed, slot.producer, proof.traceBranch, header.nodes);
        if (MerkleBranch.listRoot(TAG_TRACE, header.nodes, tree) != p.trace) revert WrongSlot();
        _resolve(id, d, clock, true, Reason.SLOT);
    }

    /// @notice The asserter shows the disputed leaf in both states; the chain adds up the squared differences and decides.
    /// @param id The dispute.
    /// @param position Where it stands.
    /// @param descriptor The slot's.
    /// @param x The leaf in state X.
    /// @param y The leaf in state Y.
    function proveSum(
        uint256 id,
        Position calldata position,
        bytes calldata descriptor,
        Opening calldata x,
        Opening calldata y
    ) external {
        (Dispute storage d, PackedClock clock, Position memory p) = _enter(id, position, Side.ASSERTER);
        if (p.level != Level.SUM_LEAF) revert Walk.WrongLevel(p.level);
        uint256 computed = _sum(p, descriptor, x, y);
        emit SumProved(id, uint256(p.claimed), computed);
        _resolve(id, d, clock, uint256(p.claimed) == computed, Reason.SUM);
    }

    /// @notice Ends a dispute whose side on turn has no time left. Anybody may call it.
    /// @param id The dispute.
    function timeout(uint256 id) external {
        (Dispute storage d, PackedClock clock) = _running(id);
        if (block.timestamp < clock.deadline()) revert NotExpired(clock.deadline());
        _end(id, d, clock, clock.turn() == Side.CHALLENGER, Reason.TIMEOUT);
    }

    /// @notice Hash of the position at which a dispute stands.
    function positionHash(uint256 id) external view returns (bytes32) {
        (Dispute storage d,) = _existing(id);
        return d.position;
    }

    /// @notice What the chain knows about a dispute, and its clock.
    function dispute(uint256 id) external view returns (Dispute memory, Clock memory) {
        (Dispute storage d,) = _existing(id);
        return (d, d.clock.unpack());
    }

    /// @notice Seconds in which the side on turn can still move; 0 if none are left or the dispute is finished.
    function timeLeft(uint256 id) external view returns (uint256) {
        uint256 end = deadline(id);
        return end > block.timestamp ? end - block.timestamp : 0;
    }

    /// @notice First second in which `timeout` is possible; 0 if the dispute is finished.
    function deadline(uint256 id) public view returns (uint256) {
        (, PackedClock clock) = _existing(id);
        return clock.winner() == Side.NONE ? clock.deadline() : 0;
    }

    function _first(StartParams calldata params, Header memory header) private pure returns (Position memory) {
        if (params.asserter == address(0) || params.challenger == address(0)) revert ZeroHash();
        if (params.clock == 0) revert InvalidStart();
        if (params.kind == KIND_REPLAY) {
            if (params.constants == 0 || params.start == 0 || params.end == 0) revert ZeroHash();
            if (params.steps == 0) revert InvalidStart();
            return Walk.startReplay(header, params.firstStep, params.steps, params.start, params.end);
        }
        if (params.kind != KIND_DISTANCE && params.kind != KIND_REFERENCE) revert InvalidStart();
        if (params.component == 0 || params.component > COMPONENTS) revert InvalidStart();
        if (params.x == 0 || params.y == 0) revert ZeroHash();
        return Walk.startSum(header.slots, params.component, params.x, params.y, params.sum);
    }

    /// @dev Who may move, in time, from where the dispute stands.
    function _enter(uint256 id, Position calldata position, Side side)
        private
        view
        returns (Dispute storage d, PackedClock clock, Position memory p)
    {
        (d, clock) = _running(id);
        address player = side == Side.ASSERTER ? d.asserter : d.challenger;
        if (clock.turn() != side || msg.sender != player) revert NotOnTurn(msg.sender);
        copyPosition(position, p);
        bytes32 hash = hashPosition(p);
        if (hash != d.position) revert StalePosition(hash);
    }

    /// @dev Two storage writes: the position and the clock.
    function _leave(Dispute storage d, PackedClock clock, Position memory p, Side next) private {
        d.clock = clock.press(next, block.timestamp);
        d.position = hashPosition(p);
    }

    /// @dev A last move has to be in time as any other.
    function _resolve(uint256 id, Dispute storage d, PackedClock clock, bool asserterWon, Reason reason) private {
        _end(id, d, clock.press(Side.NONE, block.timestamp), asserterWon, reason);
    }

    function _end(uint256 id, Dispute storage d, PackedClock clock, bool asserterWon, Reason reason) private {
        Side winner = asserterWon ? Side.ASSERTER : Side.CHALLENGER;
        d.clock = clock.finish(winner);
        emit Resolved(id, winner, reason);
        IDisputeResolver(market).onResolved(id, d.context, asserterWon);
    }

    function _sum(Position memory p, bytes calldata descriptor, Opening calldata x, Opening calldata y)
        private
        pure
        returns (uint256)
    {
        if (keccak256(descriptor) != p.descriptor) revert Walk.WrongDescriptor();
        SlotView memory slot = Descriptor.slot(descriptor);
        x.verify(Place(TAG_STATE, p.pre, p.element, slot.tensor, p.lo), descriptor);
        y.verify(Place(TAG_STATE, p.trace, p.element, slot.tensor, p.lo), descriptor);
        uint256 rest = slot.tensor.elements - LEAF_WORDS * p.lo;
        return Distance.ofLeaves(x.leaf, y.leaf, rest < LEAF_WORDS ? rest : LEAF_WORDS, slot.tensor.dtype, slot.scale);
    }

    function _running(uint256 id) private view returns (Dispute storage d, PackedClock clock) {
        (d, clock) = _existing(id);
        if (clock.winner() != Side.NONE) revert Finished(id);
    }

    function _existing(uint256 id) private view returns (Dispute storage d, PackedClock clock) {
        d = _disputes[id];
        clock = d.clock;
        // A clock always has a turn or a winner.
        if (PackedClock.unwrap(clock) == 0) revert UnknownDispute(id);
    }
}
