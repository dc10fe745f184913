"""The three beacons behind a market: a published round of drand draws on a real node, nothing else of drand does."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from web3.types import RPCEndpoint

import toy_market
from anvil_node import anvil_node
from drand_relay import ROUNDS, relay
from node_snapshots import unchanged
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.beacon.beacon_contract import Beacon
from pol.chain.beacon.drand_relays import Relays
from pol.chain.deployment_rules import DRAND_DELAY, BeaconKind, Settings
from pol.chain.deployments.deployment import Deployment, deploy
from pol.chain.node.connection import Connection
from pol.claims.segment_draw import draw
from pol.commitments.checkpoint_log import CheckpointLog
from pol.errors import OperationalError, ProtocolError
from pol.verification.beacon.drand import QUICKNET, Round
from toy_market import SEGMENTS, Ground

PUBLISHED = next(published for published in ROUNDS["quicknet"] if published.number == 30662990)
COMMITTED = QUICKNET.time_of(PUBLISHED.number) - DRAND_DELAY - 1
"""A commitment in this second is bound to the round."""
WEEK = 7 * 24 * 3600


@contextmanager
def node(hardfork: str = "prague") -> Iterator[Connection]:
    """A node whose clock stands an hour before the commitment."""
    with anvil_node("--timestamp", str(COMMITTED - 3600), hardfork=hardfork) as url:
        yield Connection.to(url)


def committed(connection: Connection, kind: BeaconKind) -> tuple[Ground, bytes]:
    """A toy task whose solver has committed its log; roots of states are all that the draw needs."""
    ground, trace = toy_market.settled(connection, kind), toy_market.segment_traces()[0]
    log = CheckpointLog([trace.state_root(0), *(bytes([i]) * 32 for i in range(1, SEGMENTS + 1))])
    task_id = toy_market.awarded(ground, toy_market.terms_of(trace))
    if kind is BeaconKind.DRAND:
        at(connection, COMMITTED)
    arguments = (task_id, SEGMENTS + 1, log.root(), [], b"\x03" * 32, log.inclusion(0))
    ground.market.proofs.commit(ground.wallets["solver"], *arguments)
    return ground, task_id


def at(connection: Connection, time: int) -> None:
    """The next block has this time."""
    answer = connection.web3.provider.make_request(RPCEndpoint("evm_setNextBlockTimestamp"), [time])
    assert "error" not in answer


def test_a_published_round_draws_on_a_real_node() -> None:
    with node() as connection, relay() as url:
        ground, task_id = committed(connection, BeaconKind.DRAND)
        proofs, verifier, solver = ground.market.proofs, ground.wallets["verifier"], ground.wallets["solver"]
        assert proofs.proof(task_id).round == PUBLISHED.number
        beacon = ground.deployment.beacon_on(connection)
        with pytest.raises(Reverted, match="RoundNotReached"):
            beacon.submit(solver, PUBLISHED)
        connection.wait_until(QUICKNET.time_of(PUBLISHED.number))
        refused(beacon, solver)
        with pytest.raises(OperationalError, match="name relays"):
            beacon.bring(verifier, PUBLISHED.number)
        beacon.bring(verifier, PUBLISHED.number, Relays([url]).round)
        assert beacon.seed(PUBLISHED.number) == PUBLISHED.seed
        assert verifier.receipts[-1]["gasUsed"] < 200_000
        beacon.bring(verifier, PUBLISHED.number)
        assert proofs.drawn_segments(task_id) == draw(PUBLISHED.seed, SEGMENTS, 1)


def refused(beacon: Beacon, wallet: Wallet) -> None:
    """What is not the round's signature, and rounds that the caller would like better."""
    older = next(published for published in ROUNDS["quicknet"] if published.number == 30662982)
    with pytest.raises(Reverted, match=f"InvalidSignature.{PUBLISHED.number}"):
        beacon.submit(wallet, Round(PUBLISHED.number, older.signature))
    with pytest.raises(ProtocolError, match="no point of G1"):
        beacon.submit(wallet, Round(PUBLISHED.number, b"\x80" + bytes(46) + b"\x01"))
    beacon.submit(wallet, older)
    assert beacon.recorded(older.number)
    assert not beacon.recorded(PUBLISHED.number)


@pytest.mark.parametrize("kind", [BeaconKind.BLOCK, BeaconKind.PREVRANDAO])
def test_what_a_chain_knows_itself_draws_at_once(kind: BeaconKind) -> None:
    connection = Connection.embedded()
    ground, task_id = committed(connection, kind)
    beacon, number = ground.deployment.beacon_on(connection), ground.market.proofs.proof(task_id).round
    assert not beacon.recorded(number)
    beacon.bring(ground.wallets["verifier"], number)
    beacon.record(ground.wallets["whistleblower"], number)
    assert ground.market.proofs.drawn_segments(task_id) == draw(beacon.seed(number), SEGMENTS, 1)


def test_rounds_that_nobody_sees_for_a_week_are_replaced() -> None:
    """The draw and the seat: each waits for its own, and none for ever."""
    with node() as connection:
        ground, task_id = committed(connection, BeaconKind.DRAND)
        market, anybody = ground.market, ground.wallets["deployer"]
        for desk, round_of in (
            (market.proofs, lambda: market.proofs.proof(task_id).round),
            (market.seats, lambda: market.seats.seating(task_id).round),
        ):
            number = round_of()
            with unchanged(connection):
                connection.wait_until(connection.now() + WEEK)
                desk.replace_round(anybody, task_id)
                assert round_of() > number
                assert QUICKNET.time_of(round_of()) > connection.now()


def test_drand_is_refused_where_the_chain_has_no_precompiles_for_it() -> None:
    with node("cancun") as connection:
        wallet = toy_market.wallets(connection)["deployer"]
        with pytest.raises(Reverted, match="PrecompileMissing"):
            deploy(wallet, Settings(wallet.address, beacon=BeaconKind.DRAND))


def test_a_deployment_says_which_beacon_it_has() -> None:
    connection = Connection.embedded()
    wallet = toy_market.wallets(connection)["deployer"]
    deployment = deploy(wallet, Settings(wallet.address, beacon=BeaconKind.PREVRANDAO))
    assert Deployment.from_json(deployment.to_json()) == deployment
    assert deployment.beacon_on(connection).read("nextRound") == connection.block_number() + 2
    with pytest.raises(ProtocolError, match="no document of a deployment"):
        Deployment.from_json(deployment.to_json().replace('  "beacon_kind": "prevrandao",\n', ""))
    with pytest.raises(ProtocolError, match="no document of a deployment"):
        Deployment.from_json(deployment.to_json().replace("prevrandao", "dice"))
