"""Gas of the court: of its arithmetic, and of disputes as the market carries them, on a local node by Osaka's rules."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from hexbytes import HexBytes
from web3 import HTTPProvider, Web3

import toy_market
from anvil_node import anvil_node
from lab.benchmarks.figure import Figure
from pol.chain.contract_abi import artifact
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.objections import CommittedSegment
from pol.chain.node.connection import Connection
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.program_hash import program_header
from pol.demo.lying_players import LyingTrace, draw_lie
from pol.dispute.disputed_claim import ReplayClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.position import Side
from pol.roles.party.dispute_session import DisputeSession
from pol.roles.party.trace_publications import TracePublications
from pol.training.storage.store import Store
from toy_market import Ground

OPERATIONS = ("add", "mul", "div", "sqrt", "fma")
_PAIRS = 2_000
_CHUNK = 64
_CHUNKS = 25
_SEED = 4


def arithmetic_gas() -> dict[str, float]:
    """Mean gas of an operation on normal deviates (roots: of their magnitudes), and of an fma in a chunk of 64.

    Raises:
        OperationalError: anvil isn't installed, or doesn't start.
    """
    words = np.random.default_rng(_SEED).standard_normal(2 * _PAIRS).astype("<f4")
    figures = {}
    with anvil_node(hardfork="osaka") as url:
        web3 = Web3(HTTPProvider(url))
        document = artifact("ArithmeticGas")
        deployed = web3.eth.contract(abi=document["abi"], bytecode=document["bytecode"]).constructor()
        receipt = web3.eth.wait_for_transaction_receipt(deployed.transact({"from": web3.eth.accounts[0]}))
        contract = web3.eth.contract(address=receipt["contractAddress"], abi=document["abi"])
        for operation in OPERATIONS:
            operands = np.abs(words) if operation == "sqrt" else words
            gas, _ = contract.functions[operation](operands.view("<u4").tolist()).call()
            figures[f"{operation}_gas"] = gas / _PAIRS
        chunks = words[: 2 * _CHUNK * _CHUNKS].reshape(_CHUNKS, 2, _CHUNK)
        used = [contract.functions.chunk(a.tobytes(), b.tobytes()).call()[0] for a, b in chunks]
        figures["chunk_fma_gas"] = sum(used) / len(used) / _CHUNK
    return figures


NODES = 7
"""Of the toy program; a lie in each is disputed, and the dearest dispute counts."""


def arithmetic_figures() -> dict[str, Figure]:
    """The same as figures."""
    return {name: Figure(gas, "gas") for name, gas in arithmetic_gas().items()}


@dataclass(frozen=True)
class Cost:
    """Of all transactions of both sides."""

    gas: int
    transactions: int


def market_dispute_figures() -> dict[str, Figure]:
    """The dearest dispute about a verdict, and about a segment of a log, of a toy task of two segments of 20 steps."""
    figures: dict[str, Figure] = {}
    with anvil_node(hardfork="osaka") as url:
        ground = toy_market.settled(Connection.to(url))
        for name, play in (("market_dispute", _verdict), ("market_objection", _objection)):
            dearest = max((play(ground, node) for node in range(NODES)), key=lambda cost: cost.gas)
            figures[f"{name}_gas"] = Figure(dearest.gas, "gas")
            figures[f"{name}_transactions"] = Figure(dearest.transactions, "transactions")
    return figures


def _verdict(ground: Ground, node: int) -> Cost:
    """A verifier that lies in one node loses its stake."""
    lying: list[LyingTrace] = []

    def lie(honest: SegmentTrace) -> LyingTrace:
        lying.append(_lying(honest, node))
        return lying[0]

    toy = toy_market.at_verdict(ground, lie)
    market, asserter = toy.market, ReplayPlayer(lying[0])

    def disputed() -> None:
        number = toy.challenge(ReplayPlayer(toy.honest))
        _play(ground, market.game, toy.honest, number, "verifier", asserter)
        if number in market.challenges.settleable(toy.task_id, ground.wallets["whistleblower"].address):
            market.challenges.settle(ground.wallets["whistleblower"], number)

    cost = _cost(ground.connection, disputed)
    assert not market.challenges.settleable(toy.task_id, ground.wallets["whistleblower"].address)
    return cost


def _objection(ground: Ground, node: int) -> Cost:
    """A solver that lies in one node of a segment loses its stake."""
    traces = toy_market.segment_traces()
    honest, interval = traces[1], traces[1].steps
    lying = _lying(honest, node)
    roots = [traces[0].state_root(0), traces[0].state_root(interval), lying.state_root(2 * interval)]
    task_id = toy_market.committed(ground, toy_market.terms_of(traces[0], 2 * interval, interval), roots)
    market, log = ground.market, CheckpointLog(roots)
    segment = CommittedSegment(1, roots[1], roots[2], (log.inclusion(1), log.inclusion(2)))
    terms, header = market.registry.terms(task_id), program_header(honest.program)

    def disputed() -> None:
        steps = (interval, interval, roots[1], roots[2])
        claim = ReplayClaim(bytes(32), terms.program, terms.constants, *steps)
        payload = ReplayPlayer(honest).open(claim.first(header))
        number = market.objections.object(ground.wallets["whistleblower"], task_id, segment, header, payload)
        _play(ground, market.objection_game, honest, number, "solver", ReplayPlayer(lying))
        if not market.objections.dispute(number).is_settled:
            market.objections.settle(ground.wallets["whistleblower"], number)

    cost = _cost(ground.connection, disputed)
    assert market.objections.objected(task_id).fell
    return cost


def _lying(honest: SegmentTrace, node: int) -> LyingTrace:
    return LyingTrace(honest, draw_lie(honest, [node], Random(node)))


def _play(
    ground: Ground, game: DisputeGame, honest: SegmentTrace, number: int, asserter: str, lying: ReplayPlayer
) -> None:
    """Both sides publish the traces that they open, and move in turn until the truth has won."""
    traces = TracePublications(Store(f"memory://market-dispute-{number}"))
    players = {asserter: lying, "whistleblower": ReplayPlayer(honest)}
    sides = [
        DisputeSession(
            game, ground.wallets[who], honest.program, number, replace(player, published=traces), traces=traces
        )
        for who, player in players.items()
    ]
    while game.winner(number) is Side.NONE:
        assert any(side.advance() for side in sides)
    assert game.winner(number) is Side.CHALLENGER


def _cost(connection: Connection, act: Callable[[], None]) -> Cost:
    """Of all transactions that are sent meanwhile."""
    web3 = connection.web3
    before = web3.eth.block_number
    act()
    blocks = [web3.eth.get_block(number) for number in range(before + 1, web3.eth.block_number + 1)]
    sent = [each for block in blocks for each in block["transactions"] if isinstance(each, HexBytes)]
    return Cost(sum(web3.eth.get_transaction_receipt(each)["gasUsed"] for each in sent), len(sent))
