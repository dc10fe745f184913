"""A task that can't be worked on is one task's trouble: refused where it can be, told and put off elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from all_parties import Solver, Submitter, Verifier, Whistleblower, next_of_solver, next_of_verifier
from role_market import OFFER, Town, captured
from torch import nn

from pol.chain.account.wallet import Reverted
from pol.claims.distance import component_distances, require_distances
from pol.errors import EvidenceError, Fault, OperationalError, ProtocolError, UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Capture, capture
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.task_reader import require_terms
from pol.roles.process.party_process import DecisionResult, LoggedDecision, Process
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from pol.training.storage.store import Store
from pol.training.task import published_task
from toy_market import fund

TROUBLE: list[Callable[[], Exception]] = [
    lambda: UnsupportedError("a profiled segment has state that isn't finite"),
    lambda: ProtocolError("the published task isn't the one on chain"),
    lambda: EvidenceError(Fault.WRONG_ROOT, "another state"),
    lambda: Reverted("post", "WrongStatus", (b"", 1)),
    lambda: ZeroDivisionError("division by zero"),
    lambda: KeyError("data.7"),
    lambda: IndexError("list index out of range"),
    AssertionError,
    MemoryError,
    RecursionError,
    lambda: OverflowError("int too large"),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    lambda: RuntimeError("expected scalar type Float"),
    lambda: np.linalg.LinAlgError("singular"),
]


class TwoTasks(Process[Submitter]):
    def tasks(self) -> list[bytes]:  # type: ignore[override]  # a list is iterable
        return [task_id for task_id in (b"\1" * 32, b"\2" * 32) if task_id not in self._done]


@pytest.mark.parametrize("trouble", TROUBLE, ids=lambda make: type(make()).__name__)
@pytest.mark.parametrize("acting", [False, True], ids=["deciding", "acting"])
def test_trouble_with_one_task_is_told_and_others_go_on(
    town: Town, trouble: Callable[[], Exception], acting: bool
) -> None:
    done: list[bytes] = []

    def fail() -> object:
        raise trouble()

    def decide(role: Submitter, task_id: bytes) -> Decision:
        if task_id == b"\2" * 32:
            return Action(task_id, "go on", "the other task", Mode.PROPOSE, lambda: done.append(task_id))
        return Action(task_id, "stake", "it seems to pay", Mode.PROPOSE, fail) if acting else fail()  # type: ignore[return-value]

    told: list[LoggedDecision] = []
    times = [0.0]
    process = TwoTasks(town.join(Submitter, "s"), decide, note=told.append, poll=12, clock=lambda: times[0])
    for _ in range(5):
        process.turn()
        times[0] += 12
    assert len(done) == 5
    odd = [taken for taken in told if taken.task_id == b"\1" * 32]
    assert odd
    assert all(taken.detail for taken in odd)
    refused = acting and isinstance(trouble(), ProtocolError)
    assert {taken.result for taken in odd} == {DecisionResult.REFUSED if refused else DecisionResult.BROKEN}
    # What can't be worked on isn't tried in every turn.
    assert len(odd) == (5 if refused else 2)


def test_the_store_and_the_node_are_tried_again_in_every_turn(town: Town) -> None:
    def decide(role: Submitter, task_id: bytes) -> Decision:
        raise OperationalError("no node")

    told: list[LoggedDecision] = []
    process = TwoTasks(town.join(Submitter, "s"), decide, note=told.append)
    for _ in range(3):
        process.turn()
    assert [taken.result for taken in told] == [DecisionResult.FAILED] * 6


def test_what_is_owed_is_tried_in_every_turn(town: Town) -> None:
    def fail() -> object:
        raise ZeroDivisionError

    def decide(role: Submitter, task_id: bytes) -> Decision:
        return (
            Action(task_id, "disclose", "it sits", Mode.DEFEND, fail) if task_id[0] == 1 else Wait(task_id, "nothing")
        )

    told: list[LoggedDecision] = []
    process = TwoTasks(town.join(Submitter, "s"), decide, note=told.append)
    for _ in range(4):
        process.turn()
    assert [taken.result for taken in told if taken.task_id[0] == 1] == [DecisionResult.BROKEN] * 4


class Masked(nn.Module):
    def __init__(self, as_buffer: bool, least: float = -1e9) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 10)
        mask = torch.zeros(10).masked_fill(torch.arange(10) > 8, least)
        if as_buffer:
            self.register_buffer("mask", mask)
        else:
            self.mask = mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layer(x) + self.mask
        return logits


class Counting(Masked):
    """Its mask is written in every step."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mask.mul_(1.5)
        return super().forward(x)


def masked_task(model: nn.Module) -> Capture:
    data = [torch.randn(8, 64), torch.randint(0, 9, (8,))]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return capture(model, nn.CrossEntropyLoss(), optimizer, data, torch.arange(8).reshape(2, 4))


@pytest.mark.parametrize("least", [-1e9, -float("inf")])
def test_a_mask_that_stays_has_no_part_in_distances(least: float) -> None:
    """A buffer of large numbers that no step changes is no way from itself; as a plain attribute it is a constant."""
    found = masked_task(Masked(True, least))
    place = found.names.slots.index("mask")
    assert found.program.keeps(place)
    assert not any(found.program.keeps(slot) for slot in range(place))
    require_distances(found.program, found.state, found.names.slots)
    end, _ = CpuExecutor(found.program, found.constants).advance(found.state, 0)
    parameter, buffer, _ = component_distances(found.program, end, found.state)
    assert parameter > 0
    assert buffer == 0
    assert "constant.0" in masked_task(Masked(False, least)).names.constants


@pytest.mark.parametrize("least", [-1e9, -float("inf"), float("nan")])
def test_a_buffer_that_changes_has_distances(least: float) -> None:
    with pytest.raises(UnsupportedError, match=r"mask holds (numbers of 8388608 and more|NaN or infinity)"):
        masked_task(Counting(True, least))


def test_a_mask_of_nan_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="mask holds NaN or infinity"):
        masked_task(Masked(True, float("nan")))


def test_a_first_state_without_distances_is_refused_by_everybody_before_they_stake(town: Town, tmp_path: Path) -> None:
    """Somebody else's capture: what this one refuses is published by hand."""
    honest = captured()
    state = [words.copy() for words in honest.state]
    state[0].reshape(-1)[0] = np.float32(1e9).view(np.uint32)
    odd = replace(honest, state=state)
    submitter = town.join(Submitter, "s")
    with pytest.raises(ProtocolError, match=r"first state holds a number.*no distance"):
        submitter.submit(odd, OFFER)
    # The same past the submitter's own check.
    terms = submitter.market.registry.terms(submitter.submit(honest, OFFER))
    digest, document = published_task.publish(
        Store(f"file://{tmp_path}"), odd, steps=OFFER.steps, interval=OFFER.interval
    )
    loaded = published_task.load(Store(f"file://{tmp_path}"), digest)
    with pytest.raises(ProtocolError, match="Don't stake on it"):
        require_terms(loaded, replace(terms, initial_state=document.initial_state_root))
    digest, document = published_task.publish(submitter.store, odd, steps=OFFER.steps, interval=OFFER.interval)
    hostile = replace(terms, initial_state=document.initial_state_root, document=bytes.fromhex(digest))
    fund(town.connection, submitter.wallet.address)
    submitter.deposit(submitter.market.settlement.escrow_of(hostile))
    submitter.market.registry.submit(submitter.wallet, hostile)
    for kind, decide in (
        (Verifier, next_of_verifier),
        (Solver, next_of_solver),
        (Whistleblower, next_of_whistleblower),
    ):
        party = town.join(kind, kind.__name__)
        locked = party.market.vault.balances(party.wallet.address).locked
        process = Process(party, decide, Mode.PROPOSE)  # type: ignore[arg-type]  # one of several kinds
        for _ in range(3):
            process.turn()
            town.connection.wait_for_block(town.connection.block_number() + 1)
        assert party.market.vault.balances(party.wallet.address).locked <= locked + terms.verifier_stake
        with pytest.raises(ProtocolError, match="no distance"):
            party.task(submitter.market.registry.events("TaskSubmitted")[-1]["taskId"])
