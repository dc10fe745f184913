"""The dispute game: disputes rebuilt from events alone, and moves sent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eth_typing import ChecksumAddress
from hexbytes import HexBytes
from web3 import Web3
from web3.types import TxParams, TxReceipt

from pol.chain.account.typed_data import signed_struct
from pol.chain.account.wallet import Reverted, Wallet, reverting
from pol.chain.contract.binding import Binding
from pol.chain.contract.structs import decoded
from pol.chain.court.dispute_from_events import dispute_from_events
from pol.chain.node.connection import operational
from pol.commitments.keccak import keccak256
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import DisputedClaim, ReceiptClaim, ReplayClaim, SumClaim
from pol.dispute.encoding.move_encoding import FUNCTIONS, encode, selector
from pol.dispute.moves import DisputeEnded, Move, Proof
from pol.dispute.position import ClaimKind, Position, Side, packed_position, state_hash
from pol.dispute.rules import apply
from pol.errors import OperationalError, ProtocolError
from pol.graph.step_program import StepProgram

MOVE_TYPE = signed_struct("Move", "bytes32 head, bytes32 content")
"""The signed form of a move that somebody else relays (docs/spec/dispute.md, "Who may move")."""


@dataclass(frozen=True)
class StartParams:
    """Parties and claim of a dispute; the contract's struct ``StartParams``."""

    asserter: ChecksumAddress
    challenger: ChecksumAddress
    program: bytes
    constants: bytes
    kind: ClaimKind
    component: int
    first_step: int
    steps: int
    start: bytes
    end: bytes
    x: bytes
    y: bytes
    sum: int
    clock: int

    def claim(self, identity: bytes) -> DisputedClaim:
        """The disputed claim; ``identity`` is the dispute's id."""
        replayed = (identity, self.program, self.constants, self.first_step, self.steps, self.start, self.end)
        if self.kind is ClaimKind.REPLAY:
            return ReplayClaim(*replayed)
        if self.kind is ClaimKind.RECEIPT:
            program = (identity, self.program, self.constants)
            return ReceiptClaim(*program, self.first_step, self.start, self.x, self.y)
        return SumClaim(identity, self.program, self.component, self.x, self.y, self.sum)

    def player(self, side: Side) -> ChecksumAddress:
        """The account of a side."""
        return self.asserter if side is Side.ASSERTER else self.challenger


@dataclass(frozen=True)
class RunningDispute:
    """A running dispute: its parties, present position and past moves."""

    params: StartParams
    position: Position
    record: DisputeRecord

    @property
    def on_turn(self) -> ChecksumAddress:
        """The account that has to move."""
        return self.params.player(self.position.turn)


class DisputeGame(Binding):
    """The contract of disputes. It keeps one hash for each; this class rebuilds the preimage from events."""

    def whole(self, block: int) -> tuple[int, int]:
        """Number of disputes by the state of a block, and by events."""
        return int(self.read("disputes", at=block)), len(self.events("Started"))

    @cached_property
    def bits(self) -> int:
        """Levels of a tree that one move opens."""
        return int(self.read("width"))

    @cached_property
    def graces(self) -> tuple[int, int]:
        """Shortest time for a move, in seconds: where a segment or step has to be executed, and elsewhere."""
        return int(self.read("replayGrace")), int(self.read("moveGrace"))

    def longest(self, clock: int) -> int:
        """Longest possible dispute with this time budget of each side; seconds."""
        return int(self.read("longest", clock))

    def started(self, dispute: int) -> dict[str, Any]:
        """The event `Started` of a dispute. Raises OperationalError: the node has no record of it."""
        return self.last_event(f"dispute {dispute}", "Started", number=dispute)

    def params(self, dispute: int) -> StartParams:
        """Parties and claim of a dispute. Raises OperationalError: the node has no record of it."""
        return decoded(StartParams, self.started(dispute)["params"])

    def winner(self, dispute: int) -> Side:
        """The winning side, NONE while the dispute runs."""
        _, (_, _, _, _, result, _, _) = self.read("dispute", dispute, about=dispute)
        return Side(result)

    def standing(self, dispute: int, program: StepProgram) -> RunningDispute:
        """A running dispute, rebuilt from its events and its program.

        Raises:
            OperationalError: the events don't lead to the position on chain (a node out of sync).
        """
        record, position = self.reconstruct(dispute, program)
        standing = RunningDispute(self.params(dispute), position, record)
        if bytes(self.read("head", dispute, about=dispute)) != state_hash(position, packed(standing.on_turn)):
            raise OperationalError(f"dispute {dispute}: the events don't lead to the chain's position; read them again")
        return standing

    def record(self, dispute: int, program: StepProgram) -> DisputeRecord:
        """The moves of a dispute, from its events; without a proof that ended it, which the chain has executed.

        Raises:
            OperationalError: the events aren't those of a dispute over this program.
        """
        return self.reconstruct(dispute, program)[0]

    def reconstruct(self, dispute: int, program: StepProgram) -> tuple[DisputeRecord, Position]:
        """The moves of a dispute, and the position after the last one. Raises as `record`."""
        started, params = self.started(dispute), self.params(dispute)
        claim, moved = params.claim(bytes(started["id"])), self.events("Moved", number=dispute)
        try:
            return dispute_from_events(
                claim,
                bytes(started["header"]),
                bytes(started["payload"]),
                self.bits,
                (event["move"] for event in moved),
                program,
            )
        except ProtocolError as error:
            raise OperationalError(f"dispute {dispute}: its events break a rule ({error}); read them again") from error

    def send(self, wallet: Wallet, dispute: int, position: Position, move: Move) -> TxReceipt | None:
        """Make a move; None if it was made before (its receipt got lost), or within `Wallet.posting`.

        Raises:
            Reverted: the move is illegal, late, or the dispute has moved on.
        """
        return self._send_unless_made(wallet, dispute, position, move, encode(dispute, position, move), _name(move))

    def require_accepted(self, sender: ChecksumAddress, dispute: int, position: Position, move: Move) -> None:
        """Simulate a move. Raises Reverted: the contract would refuse it."""
        call: TxParams = {"from": sender, "to": self.address, "data": HexBytes(encode(dispute, position, move))}
        with operational(f"try {_name(move)}"), reverting(_name(move)):
            self.connection.web3.eth.call(call)

    def help(self, wallet: Wallet, dispute: int, position: Position, proof: Move) -> TxReceipt | None:
        """Make a proof for the side on turn: anybody may, because only that side can win by it.

        Raises:
            Reverted: the proof is wrong, late, or the dispute has moved on.
            ProtocolError: the move is no proof.
        """
        if not isinstance(proof, Proof):
            raise ProtocolError("only a proof can be made for another side; let that side sign any other move")
        on_turn = packed(self.params(dispute).player(position.turn))
        data = selector("help") + on_turn + encode(dispute, position, proof)
        return self._send_unless_made(wallet, dispute, position, proof, data, "help")

    def sign(self, wallet: Wallet, position: Position, content: bytes) -> bytes:
        """The signature (r, s, v) by which the side on turn lets anybody relay a move for it.

        ``content`` is `pol.dispute.encoding.move_encoding.encode` of the move, or `resignation`.
        """
        message = {"head": state_hash(position, packed(wallet.address)), "content": keccak256(content)}
        return wallet.sign_typed(self.signing_domain("pol dispute"), MOVE_TYPE, message)

    def relay(self, wallet: Wallet, content: bytes, signature: bytes) -> TxReceipt:
        """Send a move that the side on turn has signed; ``wallet`` pays.

        Raises:
            Reverted: the signature is somebody else's, or the move is illegal, late, or of another position.
        """
        return wallet.send_data(self.address, selector("relay") + signature + content, "relay")

    def resign(self, wallet: Wallet, dispute: int, position: Position) -> TxReceipt | None:
        """Give up for the side on turn, which loses at once; None within `Wallet.posting`."""
        return wallet.post_data(self.address, resignation(dispute, position), "resign")

    def timeout(self, wallet: Wallet, dispute: int) -> TxReceipt:
        """End a dispute whose side on turn has no time left."""
        return self.transact(wallet, "timeout", dispute)

    def deadline(self, dispute: int) -> int:
        """First second in which `timeout` is possible; 0 if the dispute is over."""
        return int(self.read("deadline", dispute, about=dispute))

    def _send_unless_made(
        self, wallet: Wallet, dispute: int, position: Position, move: Move, data: bytes, name: str
    ) -> TxReceipt | None:
        try:
            return wallet.post_data(self.address, data, name)
        except Reverted:
            if self._has_been_made(dispute, position, move):
                return None
            raise

    def _has_been_made(self, dispute: int, position: Position, move: Move) -> bool:
        """Whether the dispute is in the position after the move, which no other move leads to."""
        try:
            after = apply(position, move)
        except ProtocolError:
            return False
        if isinstance(after, DisputeEnded):
            return self.winner(dispute) is after.winner
        on_turn = self.params(dispute).player(after.turn)
        return bytes(self.read("head", dispute, about=dispute)) == state_hash(after, packed(on_turn))


def resignation(dispute: int, position: Position) -> bytes:
    """The calldata by which the side on turn gives up."""
    return selector("resign") + dispute.to_bytes(4, "big") + packed_position(position) + b"\0" + position.opening


def _name(move: Move) -> str:
    return FUNCTIONS[type(move)]


def packed(address: ChecksumAddress) -> bytes:
    """The 20 bytes of an address."""
    return bytes.fromhex(Web3.to_checksum_address(address)[2:])
