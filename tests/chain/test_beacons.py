"""The three beacons behind a market: a published round of drand draws on a real node, nothing else of drand does."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import toy_market
from anvil_node import anvil_node
from drand_rounds import ROUNDS
from relay import relay
from toy_market import ETHER, INTERVAL, SEGMENTS
from web3.types import RPCEndpoint

from pol.chain.beacon import DRAND_DELAY, Beacon, BeaconKind
from pol.chain.connection import Connection
from pol.chain.deployment import Deployment, deploy, deploy_contract
from pol.chain.market import TaskMarket
from pol.chain.relays import Relays
from pol.chain.wallet import Reverted, Wallet
from pol.commitments.log import CheckpointLog
from pol.errors import OperationalError, ProtocolError
from pol.verification.beacon import QUICKNET, Round
from pol.verification.sampling import draw

PUBLISHED = next(published for published in ROUNDS["quicknet"] if published.number == 30662990)
COMMITTED = QUICKNET.time_of(PUBLISHED.number) - DRAND_DELAY - 1
"""A commitment in this second is bound to the round."""


@contextmanager
def node(hardfork: str = "prague") -> Iterator[Connection]:
    """A node whose clock stands an hour before the commitment."""
    with anvil_node("--timestamp", str(COMMITTED - 3600), hardfork=hardfork) as url:
        yield Connection.to(url)


def committed(connection: Connection, kind: BeaconKind) -> tuple[Deployment, TaskMarket, dict[str, Wallet], bytes]:
    """A toy task whose solver has committed its log; roots of states are all that the draw needs."""
    parties = toy_market.wallets(connection)
    deployment = deploy(parties["deployer"], parties["deployer"].address, beacon_kind=kind)
    market, _ = deployment.contracts(connection)
    trace = toy_market.segment_traces()[0]
    log = CheckpointLog([trace.state_root(0), *(bytes([i]) * 32 for i in range(1, SEGMENTS + 1))])
    task_id = market.submit(parties["submitter"], toy_market.terms_of(trace, INTERVAL * SEGMENTS), ETHER)
    market.join_as_verifier(parties["verifier"], task_id)
    market.accept(parties["solver"], task_id, ETHER // 2, (0, 0, 0))
    if kind is BeaconKind.DRAND:
        at(connection, COMMITTED)
    arguments = (task_id, SEGMENTS + 1, log.root(), [], b"\x03" * 32, log.inclusion(0))
    market.commit_proof(parties["solver"], *arguments)
    return deployment, market, parties, task_id


def at(connection: Connection, time: int) -> None:
    """The next block has this time."""
    answer = connection.web3.provider.make_request(RPCEndpoint("evm_setNextBlockTimestamp"), [time])
    assert "error" not in answer


def test_a_published_round_draws_on_a_real_node() -> None:
    with node() as connection, relay() as url:
        deployment, market, parties, task_id = committed(connection, BeaconKind.DRAND)
        assert market.task(task_id).round == PUBLISHED.number
        beacon = deployment.beacon_on(connection)
        with pytest.raises(Reverted, match="RoundNotReached"):
            market.draw(parties["solver"], task_id)
        with pytest.raises(Reverted, match="RoundNotReached"):
            beacon.submit(parties["solver"], PUBLISHED)
        connection.wait_until(QUICKNET.time_of(PUBLISHED.number))
        refused(beacon, parties["solver"])
        with pytest.raises(OperationalError, match="name relays"):
            beacon.bring(parties["verifier"], PUBLISHED.number)
        beacon.bring(parties["verifier"], PUBLISHED.number, Relays([url]).round)
        assert beacon.seed(PUBLISHED.number) == PUBLISHED.seed
        assert parties["verifier"].receipts[-1]["gasUsed"] < 200_000
        beacon.bring(parties["verifier"], PUBLISHED.number)
        assert market.draw(parties["solver"], task_id) == draw(PUBLISHED.seed, SEGMENTS, 1)
        assert market.task(task_id).seed == PUBLISHED.seed


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
    with pytest.raises(Reverted, match="RoundNotRecorded"):
        beacon.seed(PUBLISHED.number)
    with pytest.raises(Reverted, match="RoundNotRecorded"):
        beacon.record(wallet, PUBLISHED.number)


@pytest.mark.parametrize("kind", [BeaconKind.BLOCK, BeaconKind.PREVRANDAO])
def test_what_a_chain_knows_itself_draws_at_once(kind: BeaconKind) -> None:
    connection = Connection.embedded()
    deployment, market, parties, task_id = committed(connection, kind)
    beacon, number = deployment.beacon_on(connection), market.task(task_id).round
    assert not beacon.recorded(number)
    beacon.bring(parties["verifier"], number)
    beacon.record(parties["whistleblower"], number)
    assert market.draw(parties["verifier"], task_id) == draw(beacon.seed(number), SEGMENTS, 1)


def test_drand_is_refused_where_the_chain_has_no_precompiles_for_it() -> None:
    with node("cancun") as connection:
        wallet = toy_market.wallets(connection)["deployer"]
        with pytest.raises(Reverted, match="PrecompileMissing"):
            deploy(wallet, wallet.address, beacon_kind=BeaconKind.DRAND)


def test_a_short_delay_is_refused() -> None:
    with node("osaka") as connection:
        wallet = toy_market.wallets(connection)["deployer"]
        with pytest.raises(Reverted, match="DelayTooShort"):
            deploy_contract(wallet, "DrandBeacon", 23)
        beacon = Beacon(connection, deploy_contract(wallet, "DrandBeacon", 24), BeaconKind.DRAND)
        beacon.submit(wallet, ROUNDS["quicknet"][0])
        assert beacon.seed(1) == ROUNDS["quicknet"][0].seed


def test_a_deployment_says_which_beacon_it_has() -> None:
    connection = Connection.embedded()
    wallet = toy_market.wallets(connection)["deployer"]
    deployment = deploy(wallet, wallet.address, beacon_kind=BeaconKind.PREVRANDAO)
    assert Deployment.from_json(deployment.to_json()) == deployment
    assert deployment.beacon_on(connection).next_round() == connection.block_number() + 2
    older = deployment.to_json().replace('  "beacon_kind": "prevrandao",\n', "")
    assert Deployment.from_json(older).beacon_kind is BeaconKind.BLOCK
    with pytest.raises(ProtocolError, match="not a deployment document"):
        Deployment.from_json(deployment.to_json().replace("prevrandao", "dice"))
