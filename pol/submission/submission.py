"""A submitted task: from what a user's function made to a place on chain, its settlement and its weights."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pol.chain.desks.task_registry import MarketTask
from pol.chain.node.networks import is_test_net
from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.graph.work_estimate import step_work
from pol.roles.monitor.market_reader import MarketReader
from pol.roles.party.machine import time_work
from pol.roles.party.policy import PUBLIC_CHAIN, TEST_NETWORK, Policy
from pol.roles.party.task_reader import TaskReader
from pol.roles.submitter.submitter import Offer, Submitter
from pol.submission.market_place import MarketPlace
from pol.submission.task_function import captured_step
from pol.submission.task_progress import PATIENCE, Step, progress
from pol.training.storage.store import Store

if TYPE_CHECKING:
    from torch import Tensor
import math
from dataclasses import replace

from torch import Tensor

from pol.chain.desks.task_registry import TaskOutcome
from pol.chain.node.networks import NETWORKS, outage_of
from pol.graph.step_program import Component
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.task_training import to_tensor


def trained_weights(
    reader: TaskReader, task_id: bytes, names: Mapping[str, str] | None = None, unsettled: bool = False
) -> dict[str, Tensor]:
    """Parameters and buffers after the last step, by the names that the model gave them.

    The task is the one of the terms on chain, the proof the one that the solver has committed to, and the state has the
    root of the last entry of its log. ``names`` maps names of the state_dict to slots; without it every parameter and
    buffer has its own name. ``unsettled`` also takes what isn't accepted yet.
    """
    task = reader.market.registry.task(task_id)
    if not unsettled:
        _require_accepted(task.outcome)
    loaded, proof = reader.task(task_id), reader.proof(task_id)
    state = load_checkpoint(reader.store, loaded, proof.checkpoints[-1])
    known = {
        entry.name: to_tensor(entry.type, words)
        for entry, words in zip(loaded.aten.slots, state, strict=True)
        if entry.component in {Component.PARAMETER, Component.BUFFER}
    }
    if names is None:
        return known
    if missing := [slot for slot in names.values() if slot not in known]:
        raise ProtocolError(f"the task has no weights named {missing[0]}: it is of another model")
    return {name: known[slot] for name, slot in names.items()}


def _require_accepted(outcome: TaskOutcome) -> None:
    if outcome is TaskOutcome.NONE:
        raise OperationalError("the task isn't settled yet: wait by `pol submit`'s output or `pol explain TASK`")
    if outcome is not TaskOutcome.ACCEPTED:
        raise ProtocolError(
            f"the task was {outcome.name.lower()}, so there are no weights that anybody stands for: submit it again"
        )


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


ETHER = 10**18


@dataclass(frozen=True)
class Submission:
    """A task of a market, followed from here."""

    place: MarketPlace
    task_id: bytes

    @property
    def id(self) -> str:
        """The task's id, 64 hexadecimal digits."""
        return self.task_id.hex()

    def task(self) -> MarketTask:
        """The state of the task on chain."""
        return self.place.deployment.market(self.place.connection).registry.task(self.task_id)

    def progress(self, patience: float = PATIENCE) -> Iterator[Step]:
        """What happens to the task, up to its settlement.

        Raises:
            OperationalError: the node failed, or nobody makes the next call for ``patience`` seconds.
        """
        place = self.place
        reader = MarketReader(place.connection, place.deployment, place.store_url, _policy(place))
        return progress(place.connection, reader, self.task_id, patience=patience)

    def wait(self, patience: float = PATIENCE) -> MarketTask:
        """Return when the task is settled. Raises as `progress`."""
        for _ in self.progress(patience):
            pass
        return self.task()

    def weights(self, unsettled: bool = False) -> dict[str, Tensor]:
        """The trained weights, for ``model.load_state_dict``; every root is checked against the chain.

        Raises:
            ProtocolError: the training wasn't accepted, or something else was published.
            OperationalError: the task isn't settled yet, or the node or the store failed.
        """
        place = self.place
        reader = TaskReader(place.connection, place.deployment, Store(place.store_url), _policy(place))
        return trained_weights(reader, self.task_id, _kept_names(place, self.task_id), unsettled)

    @classmethod
    def of(cls, task: str, place: MarketPlace) -> Submission:
        """The task whose id begins with these digits; of an empty text the last one of the market's own key.

        Raises:
            ProtocolError: there is none, or more than one.
        """
        registry = place.deployment.market(place.connection).registry
        if not task:
            own = {} if place.signer is None else {"submitter": place.signer.address}
            mine = [bytes(event["taskId"]) for event in registry.events("TaskSubmitted", **own)]
            if not mine:
                raise ProtocolError("there is no task on this market yet: submit one by `pol submit`")
            return cls(place, mine[-1])
        tasks = [bytes(event["taskId"]) for event in registry.events("TaskSubmitted")]
        found = [each for each in tasks if each.hex().startswith(task.lower().removeprefix("0x"))]
        if not found:
            last = f"{tasks[-1].hex()[:8]} is the newest of them" if tasks else "submit one by `pol submit`"
            raise ProtocolError(f"none of {len(tasks)} tasks begins with {task}: {last}")
        if len(found) != 1:
            raise ProtocolError(f"{len(found)} of {len(tasks)} tasks begin with {task}: give more digits of one")
        return cls(place, found[0])


def submit(
    made: Any,
    price: Decimal | float | str,
    market: MarketPlace | Path | str | None = None,
    *,
    steps: int | None = None,
    batch: int | None = None,
    interval: int | None = None,
    draws: int = Offer.draws,
    seed: int = 0,
    tell: Callable[[str], None] = lambda told: None,
    announce: Callable[[Submission], None] = lambda sent: None,
) -> Submission:
    """Put a training on a market: capture, publish, and lock the price of at most ``price`` coins.

    ``made`` is ``(model, loss, optimizer, dataset)``, with an order of the samples as fifth part, a dictionary of the
    arguments of `pol.capture`, or its result. Without an order each of ``steps`` steps (300) sees ``batch`` samples
    (32), shuffled from ``seed``. ``market`` is the folder of `pol up`; by default that of this folder or ``pol-market``
    in it. The training is exact; it is committed to every ``interval`` steps, and ``draws`` segments are replayed.
    ``tell`` hears what is being done, as a large model takes minutes.

    A process that is killed before ``announce`` has returned, or fails in it, gets the same task at its next call.

    Raises:
        ProtocolError: it made something else, or the terms aren't taken; nothing is locked.
        UnsupportedError: an operation without a definition, with the line of the model.
        OperationalError: there is no market, or its node or store failed.
    """
    place = market if isinstance(market, MarketPlace) else MarketPlace.here(market)
    if place.signer is None:
        raise OperationalError("no key signs for this market: name one in pol.toml, or give a signer (`--keystore`)")
    wei = wei_of(price)
    tell("capturing a step, and comparing it with torch's own")
    step = captured_step(made, steps, batch, seed)
    submitter = Submitter(place.connection, place.deployment, place.signer, place.store_url, _policy(place))
    capture, segment = step.capture, interval or interval_of(step.steps)
    tell("taking one step, to measure this machine's pace")
    executor = submitter.times.executors(capture.program, capture.constants)
    pace = time_work(lambda: executor.watch(capture.state, 0, lambda number, output: None), time.perf_counter)
    about = (step_work(capture.program), wei, place.connection.chain_id, pace * segment, segment, draws)
    tell("storing what others need, and announcing the task")
    with submitter.wallet.once():
        task_id = submitter.submit(capture, offer_of(step.steps, *about), step.model, step.optimizer)
        if step.weights is not None:
            _keep_names(place, task_id, step.weights)
        sent = Submission(place, task_id)
        announce(sent)
    return sent


def wei_of(price: Decimal | float | str) -> int:
    """An amount of coins in wei. Raises ProtocolError: it is no amount."""
    try:
        wei = Decimal(str(price)) * ETHER
        if wei == int(wei) and wei > 0:
            return int(wei)
    except (InvalidOperation, ValueError, OverflowError):
        pass
    raise ProtocolError(f"{price} is no price: write coins as 1 or 0.25")


def _policy(place: MarketPlace) -> Policy:
    return TEST_NETWORK if is_test_net(place.connection.chain_id) else PUBLIC_CHAIN


def _names_file(place: MarketPlace, task_id: bytes) -> Path:
    return place.notes / f"{task_id.hex()}.json"


def _keep_names(place: MarketPlace, task_id: bytes, names: Mapping[str, str]) -> None:
    """Which slot each name of the state_dict has: tied tensors share one, and not all buffers are in it."""
    file = _names_file(place, task_id)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(dict(names)))
        os.replace(draft, file)
    except OSError:
        # Without it the weights come under all names of parameters and buffers.
        return


def _kept_names(place: MarketPlace, task_id: bytes) -> dict[str, str] | None:
    file = _names_file(place, task_id)
    if not file.is_file():
        return None
    known = canonical_json.parse(file.read_bytes(), str(file))
    if not isinstance(known, dict) or not all(isinstance(slot, str) for slot in known.values()):
        raise ProtocolError(f"{file} holds no names of weights: delete it")
    return {str(name): str(slot) for name, slot in known.items()}
