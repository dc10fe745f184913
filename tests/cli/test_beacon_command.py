"""`pol beacon` names the round of a claim and gives a seed only if the League has signed the round."""

from functools import partial

import pytest

from cli_runner import Said, answer, pol
from drand_relay import ROUNDS, relay
from pol.verification.beacon.drand import QUICKNET

PUBLISHED = next(published for published in ROUNDS["quicknet"] if published.number == 1000)
CLAIMED = "1692806302"
asked = partial(answer, "beacon")


def test_the_round_of_a_claim_before_it_is_published() -> None:
    by_seconds, by_date = asked("--after", CLAIMED), asked("--after", "2023-08-23T17:58:22.9+02:00")
    assert by_seconds == by_date
    assert by_seconds["round"] == 1000
    assert by_seconds["due"] == QUICKNET.time_of(1000)
    assert "seed" not in by_seconds
    assert asked("--after", CLAIMED, "--delay", "0")["round"] == 980
    assert asked("--after", CLAIMED, "--network", "default")["round"] == 3245845


def test_a_relay_gives_the_seed() -> None:
    with relay() as url:
        found = asked("--after", CLAIMED, "--relay", "http://127.0.0.1:9", "--relay", url)
        assert found["seed"] == PUBLISHED.seed.hex()
        chained = asked("--round", "72785", "--network", "default", "--relay", url)
        assert chained["seed"] == ROUNDS["default"][2].seed.hex()
        assert pol("beacon", "--round", "1001", "--relay", url) == Said(3, match="no relay gives round 1001")


def test_a_signature_gives_the_seed_or_is_refused() -> None:
    signature = PUBLISHED.signature.hex()
    people = pol("beacon", "--after", CLAIMED, "--signature", signature)
    assert people == Said(0, match=f"seed         {PUBLISHED.seed.hex()}")
    assert people == Said(0, match="due          2023-08-23T15:59:24+00:00 (1692806364)")
    first = ROUNDS["default"][0]
    chained = ("--network", "default", "--round", "1", "--signature", first.signature.hex())
    assert asked(*chained, "--previous", first.previous.hex())["seed"] == first.seed.hex()
    assert pol("beacon", *chained) == Said(1, match="signs 32 bytes of the round before")
    assert pol("beacon", "--round", "1001", "--signature", signature) == Said(1, match="not the network's")
    assert pol("beacon", "--round", "1000", "--signature", "xyz") == Said(2, match="hexadecimal")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "either the time of the claim"),
        (("--after", "1", "--round", "1"), "either the time of the claim"),
        (("--round", "1", "--relay", "http://127.0.0.1:9", "--signature", "00"), "not from both"),
        (("--after", "yesterday"), "is no time"),
        (("--after", "2023-08-23T15:58:22"), "doesn't say where"),
        (("--after", "1", "--delay", "-1"), "--delay"),
        (("--round", "0"), "--round"),
        (("--round", "1", "--network", "evmnet"), "--network"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], told: str) -> None:
    assert pol("beacon", *arguments) == Said(2, match=told)


def test_rounds_beyond_all_calendars() -> None:
    assert pol("beacon", "--round", str(2**64 - 1)) == Said(0, match="second 553402322")
    assert pol("beacon", "--round", str(2**64)) == Said(2, match="18446744073709551615")
