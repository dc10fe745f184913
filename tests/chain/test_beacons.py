"""The three beacons behind a market: a published round of drand draws on a real node, nothing else of drand does.

Rounds over HTTP from relays that answer, lie, or are not there.
"""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from web3.types import RPCEndpoint

import toy_market
from anvil_node import anvil_node
from drand_relay import ROUNDS, Answer, honest, relay
from node_snapshots import unchanged
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.beacon.beacon_contract import Beacon
from pol.chain.beacon.drand_relays import LIMIT, Relays
from pol.chain.deployment_rules import DRAND_DELAY, BeaconKind, Settings
from pol.chain.deployments.deployment import Deployment, deploy
from pol.chain.node.connection import Connection
from pol.claims.segment_draw import draw
from pol.commitments.checkpoint_log import CheckpointLog
from pol.errors import OperationalError, ProtocolError
from pol.verification.beacon.drand import DEFAULT, QUICKNET, Round
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


NOBODY = "http://127.0.0.1:9"


def changed(**fields: object) -> Answer:
    return 200, json.dumps({**json.loads(honest("quicknet", "1000")[1]), **fields}).encode()


def test_published_rounds_come_verified() -> None:
    with relay() as url:
        for published in ROUNDS["quicknet"]:
            assert Relays([url]).round(published.number) == published
        for published in ROUNDS["default"]:
            assert Relays([url + "/"], DEFAULT).round(published.number) == published


def test_the_first_relay_that_has_the_round_gives_it() -> None:
    asked: list[str] = []

    def liar(network: str, number: str) -> Answer:
        asked.append(number)
        return changed(round=int(number))

    with relay(liar) as lying, relay(lambda network, number: (500, b"")) as broken, relay() as good:
        assert Relays([NOBODY, lying, broken, good]).round(123) == ROUNDS["quicknet"][3]
        assert asked == ["123"]
        with pytest.raises(OperationalError, match=r"signature is not the network's.*status 500"):
            Relays([lying, broken]).round(123)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((404, b"no such round"), "status 404"),
        ((302, b""), "status 302"),
        (changed(round=999), "answers with round 999"),
        (changed(round=1000.0), r"1000\.0 for the number"),
        (changed(round=True), "True for the number"),
        (changed(signature=honest("quicknet", "123")[1][120:216].decode()), "something else than a round|not"),
        (changed(signature=ROUNDS["quicknet"][0].signature.hex()), "signature is not the network's"),
        (changed(signature=""), "has 48 bytes, not 0"),
        (changed(signature=7), "something else than a round"),
        (changed(randomness="00" * 32), "another randomness"),
        (changed(previous_signature="00"), "signs 0 bytes of the round before"),
        ((200, b"[]"), "something else than a round"),
        ((200, b"[" * LIMIT), "something else than a round"),
        ((200, b"\xff"), "something else than a round"),
        ((200, honest("quicknet", "1000")[1] + b" " * LIMIT), f"more than {LIMIT} bytes"),
    ],
)
def test_what_no_relay_of_drand_answers_is_the_relays_fault(answer: Answer, told: str) -> None:
    """Nothing that a relay says is evidence against anyone in a task."""
    with relay(lambda network, number: answer) as url, pytest.raises(OperationalError, match=told):
        Relays([url]).round(1000)


def test_what_is_asked_for_has_to_exist() -> None:
    with pytest.raises(OperationalError, match=r"name another relay .*doesn't answer"):
        Relays([NOBODY]).round(1000)
    with pytest.raises(ProtocolError, match="no round 0"):
        Relays([NOBODY]).round(0)
    with pytest.raises(ProtocolError, match="no relay"):
        Relays([])


def test_a_round_of_the_far_future_is_said_to_be_due_then() -> None:
    with relay() as url, pytest.raises(OperationalError, match=f"due at second {QUICKNET.time_of(2**60)} since"):
        Relays([url]).round(2**60)


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n"], ids=["headers", "body"])
def test_a_relay_that_drips_holds_nobody(begin: bytes) -> None:
    """Each byte comes in time, the whole answer never does; the next relay is asked."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server, relay() as good:

        def serve() -> None:
            for _ in range(2):
                peer, _ = server.accept()
                with peer:
                    peer.recv(1 << 16)
                    try:
                        peer.sendall(begin or b"HTTP/1.1 200 OK\r\n")
                        # Without the bound the caller is held for as long as this goes on.
                        for _ in range(300):
                            if over.wait(0.05):
                                return
                            peer.sendall(b" " if begin else b"x")
                    except OSError:
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(OperationalError, match="in time"):
            Relays([url], timeout=0.5).round(1000)
        assert Relays([url, good], timeout=2.0).round(1000).number == 1000
        assert time.monotonic() - started < 10
        over.set()
        thread.join()


def test_a_relay_without_an_end_is_left() -> None:
    long = relay(lambda network, number: (200, b" " * (1 << 22)))
    with long as url, pytest.raises(OperationalError, match=f"more than {LIMIT} bytes"):
        Relays([url]).round(1000)
