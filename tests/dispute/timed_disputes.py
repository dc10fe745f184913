"""Disputes on a node whose time the test sets: who moves when, to the second, and what the chain makes of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dispute_harness import CLOCK, ENOUGH_GAS, Court, court, params_of
from lab.disputes.dispute_match import Match, play
from pol.commitments.keccak import keccak256
from pol.dispute.disputed_claim import DisputedClaim
from pol.dispute.encoding.move_encoding import encode
from pol.dispute.play.honest_players import Player
from pol.dispute.position import Position, Side

OUT_OF_TIME, NOT_EXPIRED = keccak256(b"OutOfTime(uint256)")[:4], keccak256(b"NotExpired(uint256)")[:4]


@dataclass(frozen=True)
class Pace:
    """When a side makes its moves."""

    last_second: bool = False
    """In the last second that counts, instead of at once."""
    too_late: int | None = None
    """The one of its moves, from 0, that it makes a second later than that; None for none."""


@dataclass(frozen=True)
class Timed:
    """How a dispute ended on chain."""

    match: Match
    """As it would have gone without clocks."""
    winner: Side
    late: Side
    """Whose move came too late; NONE if no move did."""


class ClockedCourt(Court):
    """Plays to a decision on chain, by a proof or by the clock of the side that has no move."""

    def play_timed(
        self, claim: DisputedClaim, header: bytes, players: dict[Side, Player], paces: dict[Side, Pace]
    ) -> Timed:
        """A whole dispute. Every deadline is tried from both sides: no move after it, no timeout before it."""
        self.disputes += 1
        params = params_of(claim, self.asserter, self.challenger)
        claim = replace(claim, id=self._id(self.game, self.disputes, params))
        match = play(claim, header, players[Side.ASSERTER], players[Side.CHALLENGER], self.bits)
        before = self.market.functions.calls().call()
        data = self.market.encode_abi("start", [self.game.address, params, match.record.header, match.record.payload])
        assert self._mine(self.challenger, self.market.address, data)
        began = self._now()
        late = self._moves(match, paces)
        if late is not Side.NONE or not match.refuted:
            self._time_out()
        assert self.market.functions.calls().call() == before + 1, "one decision, and only one"
        assert self.market.functions.number().call() == self.disputes
        assert self._now() - began <= self.game.functions.longest(CLOCK).call()
        winner = Side.ASSERTER if self.market.functions.asserterWon().call() else Side.CHALLENGER
        return Timed(match, winner, late)

    def _moves(self, match: Match, paces: dict[Side, Pace]) -> Side:
        """Make the moves; who came too late with one."""
        made = {Side.ASSERTER: 0, Side.CHALLENGER: 0}
        for position, move, _ in match.record.walk():
            side, pace = position.turn, paces[position.turn]
            data = "0x" + encode(self.disputes, position, move).hex()
            deadline = self._deadline()
            if pace.too_late == made[side]:
                assert not self._mine(self._account(position), self.game.address, data, deadline)
                assert self._reason(self._account(position), data) == OUT_OF_TIME
                return side
            at = deadline - 1 if pace.last_second else None
            assert self._mine(self._account(position), self.game.address, data, at), position.level
            made[side] += 1
        if match.attempt is not None:
            vain = "0x" + encode(self.disputes, match.last, match.attempt).hex()
            assert not self._mine(self._account(match.last), self.game.address, vain)
        return Side.NONE

    def _time_out(self) -> None:
        data, deadline = self.game.encode_abi("timeout", [self.disputes]), self._deadline()
        if self._now() < deadline - 1:
            assert not self._mine(self.challenger, self.game.address, data, deadline - 1)
            assert self._reason(self.challenger, data) == NOT_EXPIRED
        assert self._mine(self.challenger, self.game.address, data, max(deadline, self._now() + 1))
        assert not self._mine(self.challenger, self.game.address, data), "no second end"

    def _account(self, position: Position) -> str:
        return self.asserter if position.turn is Side.ASSERTER else self.challenger

    def _deadline(self) -> int:
        return int(self.game.functions.deadline(self.disputes).call())

    def _now(self) -> int:
        return int(self._ask("eth_getBlockByNumber", ["latest", False])["timestamp"], 16)

    def _mine(self, sender: str, to: str, data: str, at: int | None = None) -> bool:
        """Whether a transaction succeeds, in a block of its own at second ``at``."""
        if at is not None:
            self._ask("evm_setNextBlockTimestamp", [at])
        sent = self._ask("eth_sendTransaction", [{"from": sender, "to": to, "data": data, "gas": hex(ENOUGH_GAS)}])
        receipt = self.web3.eth.wait_for_transaction_receipt(sent, poll_latency=0.002)
        assert at is None or self._now() == at
        return int(receipt["status"]) == 1

    def _reason(self, sender: str, data: str) -> bytes:
        """The error of a call in the last block."""
        call = {"from": sender, "to": self.game.address, "data": data, "gas": hex(ENOUGH_GAS)}
        answer: Any = self.web3.provider.make_request("eth_call", [call, "latest"])  # type: ignore[arg-type]  # its names are a type of their own
        return bytes.fromhex(answer["error"]["data"][2:10])

    def _ask(self, method: str, arguments: list[Any]) -> Any:
        answer: Any = self.web3.provider.make_request(method, arguments)  # type: ignore[arg-type]  # as above
        assert "result" in answer, answer
        return answer["result"]


@contextmanager
def clocked_court(bits: int) -> Iterator[ClockedCourt]:
    """One on a fresh node."""
    with court(bits) as found:
        clocked = ClockedCourt.__new__(ClockedCourt)
        clocked.__dict__ |= found.__dict__
        yield clocked
