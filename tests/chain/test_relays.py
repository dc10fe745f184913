"""Rounds over HTTP from relays that answer, lie, or are not there."""

import json
import socket
import threading
import time

import pytest

from drand_relay import ROUNDS, Answer, honest, relay
from pol.chain.beacon.drand_relays import LIMIT, Relays
from pol.errors import OperationalError, ProtocolError
from pol.verification.beacon.drand import DEFAULT, QUICKNET

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


def test_no_relay_answers() -> None:
    with pytest.raises(OperationalError, match=r"name another relay .*doesn't answer"):
        Relays([NOBODY]).round(1000)


def test_what_is_asked_for_has_to_exist() -> None:
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
