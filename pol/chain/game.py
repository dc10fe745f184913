"""The dispute game as the roles see it: disputes rebuilt from events alone, and moves sent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.binding import Binding
from pol.chain.connection import Connection
from pol.chain.wallet import Wallet
from pol.commitments.program import HEADER_SIZE, ProgramCommitment
from pol.dispute.header import Header
from pol.dispute.moves import (
    Claim,
    Describe,
    DescribeSlot,
    Ended,
    Move,
    Open,
    Pick,
    PickState,
    ProveSlot,
    ProveStep,
    ProveSum,
)
from pol.dispute.openings import Opening
from pol.dispute.position import Kind, Level, Position, replay_start, sum_start
from pol.dispute.rules import apply
from pol.errors import OperationalError
from pol.graph.step_program import StepProgram


class Side(IntEnum):
    """The two players."""

    NONE = 0
    ASSERTER = 1
    CHALLENGER = 2


@dataclass(frozen=True)
class StartParams:
    """What a dispute is about (contracts/interfaces/IDisputeGame.sol)."""

    asserter: ChecksumAddress
    challenger: ChecksumAddress
    program: bytes
    constants: bytes
    kind: Kind
    component: int
    first_step: int
    steps: int
    start: bytes
    end: bytes
    x: bytes
    y: bytes
    sum: int
    clock: int
    context: bytes

    @property
    def claim(self) -> Claim:
        """What stays fixed through the dispute."""
        return Claim(self.program, self.constants)

    def first_position(self, header: Header) -> Position:
        """Where the dispute begins; ``header`` is that of the program."""
        if self.kind is Kind.REPLAY:
            return replay_start(header.nodes, header.nodes_tree, self.first_step, self.steps, self.start, self.end)
        return sum_start(header.slots, self.component, self.x, self.y, self.sum)


@dataclass(frozen=True)
class Standing:
    """A running dispute: where it stands, what was opened last, and who has to move."""

    params: StartParams
    position: Position
    opened: bytes
    turn: Side
    moves: int


MOVES = ("Opened", "Picked", "StatePicked", "Described", "SlotDescribed")


class DisputeGame(Binding):
    """One dispute is one hash on chain; this class rebuilds what the hash stands for."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "DisputeGame", address)

    def params(self, dispute: int) -> tuple[StartParams, Header]:
        """What a dispute is about, and the header of its program.

        Raises:
            OperationalError: the node has no record of it.
        """
        started = self.events("Started", id=dispute)
        if not started:
            raise OperationalError(f"the node knows no dispute {dispute}; is it in sync, and is this the right chain?")
        fields: dict[str, Any] = dict(started[0]["params"])
        names = {"firstStep": "first_step"}
        values = {names.get(name, name): value for name, value in fields.items()}
        values["kind"] = Kind(values["kind"])
        params = StartParams(**values)
        return params, Header.decode(bytes(started[0]["header"]), params.program)

    def winner(self, dispute: int) -> Side:
        """Who won, or NONE while the dispute runs."""
        _, clock = self.read("dispute", dispute)
        return Side(clock[1])

    def standing(self, dispute: int, program: StepProgram) -> Standing:
        """Where a running dispute stands, from its events and its program alone.

        Raises:
            OperationalError: the events don't lead to the position that the chain holds (a node out of sync).
        """
        params, position, opened, moves = self._rebuild(dispute, program)
        record, clock = self.read("dispute", dispute)
        if bytes(record[0]) != position.hash():
            raise OperationalError(f"dispute {dispute}: the events don't lead to the chain's position; read them again")
        return Standing(params, position, opened, Side(clock[0]), len(moves))

    def moves(self, dispute: int, program: StepProgram) -> list[Move]:
        """All moves but the one that ends the dispute, in order."""
        return self._rebuild(dispute, program)[3]

    def _rebuild(self, dispute: int, program: StepProgram) -> tuple[StartParams, Position, bytes, list[Move]]:
        commitment = ProgramCommitment.of(program)
        params, header = self.params(dispute)
        position, opened, moves = params.first_position(header), b"", list[Move]()
        for name, event in self.log.read(MOVES, id=dispute):
            move = _move(name, event, position, opened, program, commitment)
            after = apply(position, move, params.claim)
            if isinstance(after, Ended):
                raise OperationalError(f"dispute {dispute}: an event follows on the end of the game; read them again")
            moves.append(move)
            position, opened = after, move.payload if isinstance(move, Open) else b""
        return params, position, opened, moves

    def send(self, wallet: Wallet, dispute: int, position: Position, move: Move) -> TxReceipt:
        """Make a move.

        Raises:
            Reverted: the move is illegal, late, or somebody moved in the meantime.
        """
        name, arguments = call_of(move)
        return wallet.send(self.function(name, dispute, position.abi_tuple(), *arguments))

    def timeout(self, wallet: Wallet, dispute: int) -> TxReceipt:
        """End a dispute whose side on turn has no time left."""
        return wallet.send(self.function("timeout", dispute))

    def deadline(self, dispute: int) -> int:
        """First second in which `timeout` is possible; 0 if the dispute is finished."""
        return int(self.read("deadline", dispute))


_FUNCTIONS: dict[type[Any], str] = {
    Open: "open",
    Pick: "pick",
    PickState: "pickState",
    Describe: "describe",
    DescribeSlot: "describeSlot",
    ProveStep: "proveStep",
    ProveSlot: "proveSlot",
    ProveSum: "proveSum",
}


def call_of(move: Move) -> tuple[str, tuple[Any, ...]]:
    """The contract's function for a move, and what it takes after the dispute and the position."""
    return _FUNCTIONS[type(move)], _arguments(move)


def _arguments(move: Move) -> tuple[Any, ...]:
    match move:
        case Open(payload):
            return (payload,)
        case Pick(index, payload):
            return (index, payload)
        case PickState():
            return ()
        case Describe(branch, descriptor, tree):
            return (list(branch), descriptor, tree)
        case DescribeSlot(header, branch, descriptor):
            return (header, list(branch), descriptor)
        case ProveStep(descriptor, values, openings):
            return (descriptor, values, [_opening(o) for o in openings])
        case ProveSlot(header, descriptor, descriptor_branch, trace_branch):
            return ((header, descriptor, list(descriptor_branch), list(trace_branch)),)
        case ProveSum(descriptor, x, y):
            return (descriptor, _opening(x), _opening(y))


def _opening(opening: Opening) -> tuple[Any, ...]:
    return (opening.list_count, opening.leaf, list(opening.leaf_branch), list(opening.list_branch))


def _move(
    name: str,
    event: dict[str, Any],
    position: Position,
    opened: bytes,
    program: StepProgram,
    commitment: ProgramCommitment,
) -> Move:
    """The move behind an event; what an event leaves out follows from the program or from what was opened before."""
    match name:
        case "Opened":
            return Open(bytes(event["payload"]))
        case "Picked":
            payload = opened[HEADER_SIZE:] if position.level is Level.STATE else opened
            return Pick(int(event["index"]), b"" if position.level is Level.BODY else payload)
        case "StatePicked":
            return PickState()
        case "Described":
            node, branch = program.nodes[position.node], tuple(commitment.node_branch(position.node))
            return Describe(branch, node.encode(), bytes(event["tree"]))
        case _:
            slot, branch = program.slots[position.lo], tuple(commitment.slot_branch(position.lo))
            return DescribeSlot(commitment.header, branch, slot.encode())
