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
from pol.submission.offer_choice import interval_of, offer_of
from pol.submission.task_function import captured_step
from pol.submission.task_progress import PATIENCE, Step, progress
from pol.submission.trained_weights import trained_weights
from pol.training.storage.store import Store

if TYPE_CHECKING:
    from torch import Tensor

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
    """An amount of coins in wei.

    Raises:
        ProtocolError: it is no amount.
    """
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
