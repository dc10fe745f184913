"""One side of one dispute on chain: reads where it stands, makes the next move, as often as it has to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from web3.types import TxReceipt

from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.challenges import Challenges
from pol.chain.desks.profiles import Profiles
from pol.dispute.moves import Move, Upheld
from pol.dispute.play.honest_players import NothingToDispute, Player
from pol.dispute.position import Position, Side
from pol.dispute.rules import apply
from pol.graph.step_program import StepProgram
from pol.roles.party.decisions import Deed, Mode


@dataclass(frozen=True)
class MoveMade:
    """A move that this side has just made, or that it gave up."""

    position: Position
    move: Move | None
    """None if this side gave up."""
    receipt: TxReceipt | None
    """None if the move had been made before."""
    upheld: Move | None = None
    """The only move that was left when this side gave up, if there was one: a proof that refutes nothing."""


@dataclass(frozen=True)
class Duel:
    """Plays ``player``'s side of a dispute. All it knows about the dispute comes from the chain."""

    game: DisputeGame
    wallet: Wallet
    program: StepProgram
    dispute: int
    player: Player
    desk: Challenges | Profiles | None = None
    """Where the result is worth something; None in a game without stakes."""

    def is_on_turn(self) -> bool:
        """Whether the dispute waits for this side."""
        if self.game.winner(self.dispute) is not Side.NONE:
            return False
        return self.game.standing(self.dispute, self.program).on_turn == self.wallet.address

    def deadline(self) -> int:
        """First second in which whoever is on turn has lost by its clock."""
        return self.game.deadline(self.dispute)

    def advance(self) -> MoveMade | None:
        """Make the move that is due, if it is this side's turn; resign where the other side turns out to be right.

        Whichever side sees first that the game has ended has the desk settle it.

        Raises:
            IllegalMove: this side contradicts itself: no rule admits the move that it would make.
            Reverted: somebody moved in the meantime, or it is too late.
            OperationalError: the node fails; it can be tried again, a move is never made twice.
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
                return MoveMade(position, move, self.game.send(self.wallet, self.dispute, position, move))
            upheld = move
        except NothingToDispute:
            pass
        return MoveMade(position, None, self.game.resign(self.wallet, self.dispute, position), upheld)

    def _settle(self) -> None:
        if self.desk is None or self.game.winner(self.dispute) is Side.NONE:
            return
        if not self.desk.dispute(self.dispute).is_settled:
            self.desk.settle(self.wallet, self.dispute)

    def _refutes(self, position: Position, move: Move) -> bool:
        """Whether a proof proves what it should; before a side gives up the contract has the last word."""
        try:
            apply(position, move)
        except Upheld:
            try:
                self.game.require_accepted(self.wallet.address, self.dispute, position, move)
            except Reverted:
                return False
        return True


def due_move(task_id: bytes, duels: Sequence[Duel]) -> Deed | None:
    """The move with the least time left that this side has to make; None if it is on turn nowhere."""
    duel = min((duel for duel in duels if duel.is_on_turn()), key=lambda duel: duel.deadline(), default=None)
    if duel is None:
        return None
    why = f"it is this party's turn in dispute {duel.dispute}"
    return Deed(task_id, "move", why, Mode.DEFEND, duel.advance, duel.deadline() - 1)
