"""A proof that runs out of gas is no proof: whatever gas a call is given, it decides as with plenty, or it reverts."""

from __future__ import annotations

import pytest
import toy
from court import ENOUGH_GAS, Court, court, sides

from pol.dispute.calldata import encode, selector
from pol.dispute.evidence import SegmentTrace
from pol.dispute.hostile import Lie, LyingTrace
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor

PROOF = "0x" + selector("proveStep").hex()
LIES = {"map": Lie(4, 0, 100, 0, 0, 20), "chunk": Lie(4, 1, 3, 33, 0, 20), "term": Lie(4, 3, 100, 2, 0, 20)}


class LastMoveKept(Court):
    """Makes all moves but the one that proves, or tries to."""

    def stand(self, honest: SegmentTrace, liar: SegmentTrace, side: Side) -> tuple[str, str, bool]:
        """Who would send which bytes, and whether it is a proof."""
        kept: list[tuple[str, str]] = []
        transact = self._transact
        made = 0

        def keep(sender: str, to: str, data: str) -> int:
            nonlocal made
            made += 1
            if data.startswith(PROOF):
                kept.append((sender, data))
                return 0
            return transact(sender, to, data)

        self._transact = keep  # type: ignore[method-assign]  # the last move stays here
        try:
            try:
                match = self.play(*sides(honest, liar, side)).match
            except AssertionError:
                assert kept, "nothing but the kept proof is missing"
                return (*kept[0], True)
        finally:
            self._transact = transact  # type: ignore[method-assign]  # as before
        assert match.attempt is not None
        sender = self.asserter if match.last.turn is Side.ASSERTER else self.challenger
        return sender, "0x" + encode(self.disputes, match.last, match.attempt).hex(), False


def succeeds(court: Court, sender: str, data: str, gas: int) -> bool:
    call = {"from": sender, "to": court.game.address, "data": data, "gas": hex(gas)}
    answer = court.web3.provider.make_request("eth_call", [call, "latest"])  # type: ignore[arg-type]  # its names are a type of their own
    return "result" in answer


@pytest.mark.parametrize("name", LIES)
def test_every_gas_limit_decides_alike_or_reverts(name: str) -> None:
    program, constants, state = toy.build(), toy.constants(), toy.initial_state()
    seen = set()
    with court() as found:
        keeper = LastMoveKept.__new__(LastMoveKept)
        keeper.__dict__ |= found.__dict__
        for side in (Side.ASSERTER, Side.CHALLENGER):
            honest = SegmentTrace(program, constants, CpuExecutor(program, constants, threads=1), state, 3, 2)
            sender, data, is_proof = keeper.stand(honest, LyingTrace(honest, LIES[name]), side)
            assert succeeds(keeper, sender, data, ENOUGH_GAS) is is_proof
            results = [succeeds(keeper, sender, data, gas) for gas in range(20_000, 260_000, 331)]
            if is_proof:
                # Enough is enough: it never fails again with more.
                assert results == sorted(results)
                assert results[-1]
            else:
                assert not any(results)
            seen.add(is_proof)
    assert seen == {True, False}
