"""One party's side of one dispute on chain: it reads the position and makes the next move."""

from __future__ import annotations

from dataclasses import dataclass

from web3.types import TxReceipt

from pol.chain.account.gas_fees import Budget
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.dispute_desk import DisputeDesk
from pol.chain.desks.market import Matter
from pol.dispute.agreed_facts import AtStep
from pol.dispute.moves import Answer, Move, Upheld
from pol.dispute.play.honest_players import NothingToDispute, Player, ReplayPlayer
from pol.dispute.position import Level, Position, Side
from pol.dispute.rules import answered, apply
from pol.graph.step_program import StepProgram
from pol.roles.party.role import Role
from pol.roles.party.trace_publications import TracePublications


@dataclass(frozen=True)
class OpenDispute:
    """A dispute that has no winner yet. It may be moot."""

    matter: Matter
    number: int
    task_id: bytes


def open_disputes(role: Role) -> list[OpenDispute]:
    """The disputes in which a party plays, oldest first."""
    return role.connection.once(("open disputes", role), lambda: _open_disputes(role))


def _open_disputes(role: Role) -> list[OpenDispute]:
    found, own = list[OpenDispute](), role.wallet.address
    for matter, court in role.market.courts.items():
        started = [court.game.events("Started", **{side: own}) for side in ("asserter", "challenger")]
        numbers = {int(event["number"]) for events in started for event in events}
        if numbers:
            numbers -= {int(event["number"]) for event in court.game.events("Resolved")}
        if numbers:
            names = court.desk.EVENTS
            for event in court.desk.events(names.challenged):
                if int(event[names.number]) in numbers:
                    found.append(OpenDispute(matter, int(event[names.number]), bytes(event["taskId"])))
    return found


def asked_tasks(role: Role) -> set[bytes]:
    """The open tasks that a party has trained, about whose log somebody demands data or says something."""
    market, own = role.market, role.wallet.address
    begun = {bytes(event["taskId"]) for event in market.registry.events("Awarded", solver=own)}
    begun -= {bytes(event["taskId"]) for event in market.registry.events("TaskClosed")} if begun else begun
    return {each for each in begun if market.demands.demands(each) or market.counterclaims.open_for(each)}


GAME_GAS = 1_000_000
"""Gas of one side in the longest dispute, with challenge and settlement (docs/goals.md)."""
GAME_BYTES = GAME_GAS // 16
"""Of data in these transactions: no byte takes less gas, but for zeros."""
GAME = Budget(1, GAME_GAS, size=GAME_BYTES)
"""Budget of a party before it puts up a stake that it may have to defend."""


@dataclass(frozen=True)
class MoveMade:
    """A move, or a resignation, that this side has just made."""

    position: Position
    move: Move | None
    """None: this side resigned."""
    receipt: TxReceipt | None
    """None: the move had been made before."""
    upheld: Move | None = None
    """The last possible move of a side that resigned: a proof that refutes nothing."""


@dataclass(frozen=True)
class DisputeSession:
    """Plays ``player``'s side of a dispute; all state is read from the chain."""

    game: DisputeGame
    wallet: Wallet
    program: StepProgram
    dispute: int
    player: Player
    desk: DisputeDesk | None = None
    """Settles the result; None in a game without stakes."""
    traces: TracePublications | None = None
    """Where this side publishes the trace of a step that it opens."""

    def is_on_turn(self) -> bool:
        """Whether the dispute waits for this side."""
        if self.game.winner(self.dispute) is not Side.NONE:
            return False
        return self.game.standing(self.dispute, self.program).on_turn == self.wallet.address

    def deadline(self) -> int:
        """First second in which the side on turn has lost by its clock."""
        return self.game.deadline(self.dispute)

    def advance(self) -> MoveMade | None:
        """Make this side's move if it is on turn, or resign if the other side is right.

        Either side may settle a finished game.

        Raises:
            IllegalMove: this side contradicts itself: no rule admits its move.
            Reverted: somebody moved in the meantime, or it is too late.
            OperationalError: the node fails; try again, a move is never made twice.
        """
        made = self._move()
        self._settle()
        return made

    def _move(self) -> MoveMade | None:
        if self.game.winner(self.dispute) is not Side.NONE:
            return None
        standing = self.game.standing(self.dispute, self.program)
        if standing.on_turn != self.wallet.address:
            return None
        position, upheld = standing.position, None
        try:
            move = self.player.move(position)
            if self._refutes(position, move):
                made = MoveMade(position, move, self.game.send(self.wallet, self.dispute, position, move))
                # The clock of this side doesn't run any more.
                self._publish(position, move)
                return made
            upheld = move
        except NothingToDispute:
            pass
        return MoveMade(position, None, self.game.resign(self.wallet, self.dispute, position), upheld)

    def _publish(self, position: Position, move: Move) -> None:
        """Publish the trace that the move has opened."""
        if self.traces is None or not isinstance(self.player, ReplayPlayer) or not isinstance(move, Answer):
            return
        opened = answered(position, move.index)
        if opened.level is Level.NODES and isinstance(opened.facts, AtStep):
            self.traces.publish(self.player.trace, opened.facts.step)

    def _settle(self) -> None:
        if self.desk is None or self.game.winner(self.dispute) is Side.NONE:
            return
        self.desk.settle_once(self.wallet, self.dispute)

    def _refutes(self, position: Position, move: Move) -> bool:
        """Whether a proof refutes the opening. Before this side resigns, the contract is asked."""
        try:
            apply(position, move)
        except Upheld:
            try:
                self.game.require_accepted(self.wallet.address, self.dispute, position, move)
            except Reverted:
                return False
        return True
