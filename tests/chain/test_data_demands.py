"""Demands for the states of a solver's log on a real node: what is shown, and what it costs."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import toy_program
from pol.arithmetic.primitives import Words
from pol.chain.account.wallet import Wallet
from pol.chain.desks.data_demands import DataDemand, DataDemands
from pol.chain.desks.market import Market
from pol.chain.node.connection import Connection
from pol.commitments.checkpoint_log import CheckpointLog, verify_inclusion
from pol.commitments.state_leaf import StatePiece, prove
from pol.graph.tensor_type import LEAF_WORDS
from shared_chain import SharedChain
from toy_market import INTERVAL, committed, lent, seat, segment_traces, terms_of

PROGRAM = toy_program.build()
MOST_GAS = 170_000
"""Of an answer."""


@dataclass
class Asked:
    """A task whose verifier sits, and the states that its solver has committed to."""

    connection: Connection
    market: Market
    parties: dict[str, Wallet]
    task_id: bytes
    log: CheckpointLog
    states: list[list[Words]]

    @property
    def demands(self) -> DataDemands:
        return self.market.demands

    def free(self, name: str) -> int:
        return self.market.vault.free(self.parties[name].address)

    def ask(self, name: str, entry: int, position: int, leaf: int) -> DataDemand:
        return self.demands.demand(self.parties[name], self.task_id, entry, position, leaf)

    def piece(self, demand: DataDemand) -> StatePiece:
        return prove(PROGRAM, self.states[demand.entry], demand.position, demand.leaf)

    def show(self, name: str, demand: DataDemand) -> int:
        path = self.log.inclusion(demand.entry)
        return int(self.demands.answer(self.parties[name], demand, self.piece(demand), path)["gasUsed"])


@pytest.fixture(scope="module")
def chain(node_chain: SharedChain) -> SharedChain:
    """A real node: bonds follow the base fee, which is zero in memory."""
    return node_chain


@pytest.fixture(scope="module")
def asked_of(chain: SharedChain) -> Iterator[Asked]:
    with lent(chain) as ground:
        first, second = segment_traces()
        states = [first.state(0), first.state(INTERVAL), second.state(2 * INTERVAL)]
        roots = [first.state_root(0), first.state_root(INTERVAL), second.state_root(2 * INTERVAL)]
        task_id = committed(ground, terms_of(first), roots)
        seat(ground, "verifier", task_id)
        yield Asked(ground.connection, ground.market, ground.wallets, task_id, CheckpointLog(roots), states)


def test_every_place_is_shown_and_the_chain_agrees(asked_of: Asked) -> None:
    """Three slots of which two have six leaves: padding is shown too, and the last leaf is filled with zeros."""
    before = asked_of.free("solver")
    places = [(1, 0, 0), (1, 0, 5), (2, 1, 7), (0, 2, 0), (2, 3, 9), (1, 2**32 - 1, 2**32 - 1)]
    asked = [asked_of.ask("whistleblower", *place) for place in places]
    assert asked_of.demands.demands(asked_of.task_id) == asked
    assert asked_of.demands.open(asked_of.task_id) == len(places)
    gas = [asked_of.show("solver", demand) for demand in asked]
    assert max(gas) < MOST_GAS
    assert asked_of.free("solver") - before == sum(demand.bond for demand in asked)
    answers = asked_of.demands.answers(asked_of.task_id)
    assert [answer.key for answer in answers] == [demand.key for demand in asked]
    for demand, answer in zip(asked, answers, strict=True):
        verify_inclusion(asked_of.log.root(), 3, demand.entry, answer.root, answer.log_path)
        assert answer.leaf == asked_of.piece(demand).leaf
    words = asked_of.states[1][0].reshape(-1)
    assert answers[0].leaf == words[:LEAF_WORDS].tobytes()
    assert answers[1].leaf == words[5 * LEAF_WORDS :].tobytes().ljust(4 * LEAF_WORDS, b"\0")
    assert [len(answer.leaf) for answer in answers[2:]] == [0, 256, 0, 0]
    assert asked_of.demands.demands(asked_of.task_id) == []
