"""The offer for a task: how often it is committed to, what is paid, and how long others have for their part."""

from __future__ import annotations

import math
from dataclasses import replace

from pol.chain.node.networks import NETWORKS, outage_of
from pol.errors import ProtocolError
from pol.roles.submitter.submitter import Offer

SEGMENTS = 12
"""Segments that a task has at least, if its steps can be divided so."""
LOCAL = frozenset(NETWORKS[name].chain_id for name in ("anvil", "ganache", "embedded"))
"""Chains of this machine, whose clock may run ahead of ours."""
AHEAD = 12
"""Seconds of a local chain in one of ours, at most (`pol up`)."""
SHORT_WINDOWS = {"bid_window": 72, "seat_window": 84, "disclosure_window": 240, "watch_window": 132}
CHALLENGE, CLOCK = 204, 1200
"""Seconds of a local chain for a task whose segments take no time."""
REPLAYS = 6
"""Replays of all that is drawn that have to fit into a window for them: each party makes two, beside others."""
BEYOND = 2**112


def interval_of(steps: int) -> int:
    """Steps of a segment: the most that give `SEGMENTS` segments or more; all segments are equally long."""
    return max((each for each in range(1, steps + 1) if steps % each == 0 and steps // each >= SEGMENTS), default=1)


def offer_of(
    steps: int, work: int, price: int, chain_id: int, segment_seconds: float, interval: int, draws: int = Offer.draws
) -> Offer:
    """The offer of at most ``price`` wei for steps of ``work`` units each.

    On a chain of this machine windows are short, as many times longer as a replay takes of it: ``segment_seconds`` of
    our clock for a segment. Elsewhere they are the usual ones.

    Raises:
        ProtocolError: the price is less than a wei for a work unit.
    """
    rate = price // (work * steps)
    if rate < 1 or price >= BEYOND:
        raise ProtocolError(
            f"a price of {price} wei for {work * steps} work units isn't possible: {work * steps} wei are the least, "
            f"{BEYOND - 1} the most"
        )
    offer = Offer(steps, interval, draws=min(draws, steps // interval), wei_per_work_unit=rate)
    if chain_id not in LOCAL:
        return offer.surviving(outage_of(chain_id))
    drawn = math.ceil(AHEAD * REPLAYS * segment_seconds * offer.draws)
    windows = {**SHORT_WINDOWS, "watch_window": SHORT_WINDOWS["watch_window"] + drawn}
    return replace(offer, **windows, challenge_window=CHALLENGE + drawn, clock=CLOCK + drawn)
