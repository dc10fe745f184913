"""One side of one dispute on chain: reads where it stands, makes the next move, as often as it has to."""

from __future__ import annotations

from dataclasses import dataclass

from web3.types import TxReceipt

from pol.chain.game import DisputeGame, Side
from pol.chain.wallet import Wallet
from pol.dispute.moves import Move
from pol.dispute.players import Asserter, Challenger
from pol.dispute.position import Position
from pol.graph.step_program import StepProgram


@dataclass(frozen=True)
class MoveMade:
    """A move that this side has just made."""

    position: Position
    move: Move
    receipt: TxReceipt


@dataclass(frozen=True)
class Duel:
    """Plays ``player``'s side of a dispute. All it knows about the dispute comes from the chain."""

    game: DisputeGame
    wallet: Wallet
    program: StepProgram
    dispute: int
    player: Asserter | Challenger

    def advance(self) -> MoveMade | None:
        """Make the move that is due, if it is this side's turn."""
        if self.game.winner(self.dispute) is not Side.NONE:
            return None
        standing = self.game.standing(self.dispute, self.program)
        mine = {Side.ASSERTER: standing.params.asserter, Side.CHALLENGER: standing.params.challenger}
        if mine.get(standing.turn) != self.wallet.address:
            return None
        if isinstance(self.player, Asserter):
            move = self.player.answer(standing.position)
        else:
            move = self.player.choose(standing.position, standing.opened)
        receipt = self.game.send(self.wallet, self.dispute, standing.position, move)
        return MoveMade(standing.position, move, receipt)
