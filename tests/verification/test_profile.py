"""A profile is a deterministic document, its thresholds follow from what it says, and a signature is about it alone."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from typing import Any

import pytest
import rfc8785
import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey
from torch import nn
from torch.nn import functional

from digits_training import loaded, profiled, published
from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import EXACT
from pol.claims.distance import component_distances
from pol.claims.segment_claim import Rerun
from pol.commitments import canonical_json
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import state_root
from pol.demo import digits
from pol.errors import ProtocolError, UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.capture import capture
from pol.graph.step_program import Component, StepProgram
from pol.graph.sum_reordering import reorder
from pol.training.record import dsse_envelope
from pol.training.storage.store import Store
from pol.training.task.published_task import load as load_task
from pol.training.task.published_task import publish
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_claim import FLOOR, claim
from pol.verification.profile.profile_document import Profile, load_profile, sign, statement, verify
from pol.verification.profile.profiling import measure_profile, rerun_programs, rerun_programs_root
from pol.verification.profile.slot_noise import furthest
from pol.verification.profile.state_metrics import component_metrics
from pol.verification.replay.canonical_replay import replay_end


@cache
def short() -> Profile:
    return measure_profile(loaded(), CpuExecutor, segments=1, reruns=2)


def test_every_number_is_what_the_specification_says() -> None:
    """Replayed and measured once more, one definition after the other."""
    task, found = loaded(), measure_profile(loaded(), CpuExecutor, segments=2, reruns=2)
    interval, types = task.document.interval, task.slot_types
    state, index = task.initial_state, 0
    for k, portion in enumerate(found.claim.portions):
        arguments = (state, k * interval, interval)
        end = replay_end(task.program, CpuExecutor(task.program, task.constants), *arguments)
        assert portion.end == state_root(types, end)
        assert portion.references == component_distances(task.program, end, state)
        for j in range(2):
            other = reorder(task.program, j)
            last = replay_end(other, CpuExecutor(other, task.constants), *arguments)
            rerun = found.claim.reruns[index]
            assert rerun.end == state_root(types, last)
            assert rerun.distances == component_distances(task.program, end, last)
            for component in Component:
                metrics = found.metrics(component, index)
                assert metrics == component_metrics(task.program, state, end, last, component)
            index += 1
        state = end
    assert index == len(found.claim.reruns)
    assert found.programs == tuple(program_hash(reorder(task.program, j)) for j in range(2))


def test_the_same_terms_give_the_same_bytes_on_any_executor() -> None:
    """Kernels on one thread and on two, and the reference; fewer reruns give the same ones."""
    task = replace(loaded(), document=replace(loaded().document, interval=2))
    first = measure_profile(task, CpuExecutor, 2, 2)
    assert measure_profile(task, partial(CpuExecutor, threads=2), 2, 2).encode() == first.encode()
    assert measure_profile(task, ReferenceExecutor, 2, 2).encode() == first.encode()
    assert first.digest == keccak256(first.encode())
    assert Profile.decode(first.encode()) == first
    more = measure_profile(task, CpuExecutor, 2, 3)
    assert more.digest != first.digest
    assert [more.claim.reruns[i] for i in (0, 1, 3, 4)] == list(first.claim.reruns)


def normalised(bias: bool) -> LoadedTask:
    """BatchNorm has running averages as buffers, Adam averages of squares with a scale."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 12, bias=bias), nn.BatchNorm1d(12), nn.Linear(12, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    captured = capture(model, functional.cross_entropy, optimizer, digits.dataset(), digits.order(1, 4))
    store = Store(f"memory://profile-bias-{bias}")
    return load_task(store, publish(store, captured, steps=4, interval=2)[0])


def test_buffers_and_scaled_averages_part_too() -> None:
    task = normalised(bias=False)
    assert any(slot.scale for slot in task.program.slots)
    found = measure_profile(task, CpuExecutor, 2, 3)
    assert min(found.spreads) > 0
    assert measure_profile(task, ReferenceExecutor, 2, 3).encode() == found.encode()
    assert furthest(found.slots, Component.BUFFER)[0][0] in {"1.running_mean", "1.running_var"}
    for component in Component:
        metrics = [found.metrics(component, index) for index in range(6)]
        assert all(m is not None and m.l1 > 0 and m.linf <= m.l2 <= m.l1 and m.cosine >= 0 for m in metrics)


def test_a_bias_before_a_normalisation_is_found_out() -> None:
    """Its gradient is zero but for rounding, and Adam divides that by its own size: honest runs part at once."""
    found = measure_profile(normalised(bias=True), CpuExecutor, 1, 1)
    with pytest.raises(UnsupportedError, match="a cheat could go anywhere within"):
        found.encode()
    (name, share), *_ = furthest(found.slots, Component.PARAMETER)
    assert name == "0.bias"
    assert share > 0.9


def test_the_profile_of_the_example() -> None:
    found = profiled()
    assert len(found.claim.reruns) == 12
    assert found.coverage == Fraction(4, 5)
    assert found.spreads[0] > 0
    assert found.spreads[1] == 0  # no buffers
    assert found.spreads[2] > 0
    assert found.thresholds[1] == FLOOR
    assert found.metrics(Component.BUFFER, 0) is None
    for component in (Component.PARAMETER, Component.OPTIMIZER):
        metrics = found.metrics(component, found.claim.witnesses[component - 1])
        assert metrics is not None
        assert metrics.relative_l2**2 == pytest.approx(found.spreads[component - 1] / 2**64)
        assert 0 < metrics.cosine <= metrics.relative_l2**2


def test_more_reruns_never_lower_a_spread() -> None:
    assert all(a <= b for a, b in zip(short().spreads, profiled().spreads, strict=True))


def test_reruns_that_the_terms_name() -> None:
    hashes = rerun_programs(loaded().program, 4)
    assert tuple(hashes) == profiled().programs
    assert len(set(hashes)) == 4
    assert rerun_programs_root(hashes) == CheckpointLog(hashes).root()
    assert rerun_programs_root([]) == bytes(32)


def test_exact_mode_measures_nothing() -> None:
    def never(program: StepProgram, constants: Sequence[Words]) -> CpuExecutor:
        raise AssertionError("nothing is executed")

    found = measure_profile(loaded(), never, 0, 0, margin=0)
    assert found.thresholds == found.spreads == EXACT
    assert found.claim.root == bytes(32)
    assert found.coverage == 1
    assert Profile.decode(found.encode()) == found


def test_progress_counts_every_execution_of_a_segment() -> None:
    seen: list[tuple[int, int]] = []
    measure_profile(loaded(), CpuExecutor, 2, 2, on_progress=lambda done, whole: seen.append((done, whole)))
    assert seen == [(i, 6) for i in range(1, 7)]


@pytest.mark.parametrize(
    ("segments", "reruns", "margin"), [(0, 1, 64), (1, 0, 64), (13, 1, 64), (-1, 1, 64), (0, 0, 1), (1, 1, 1 << 16)]
)
def test_what_cannot_be_profiled(segments: int, reruns: int, margin: int) -> None:
    with pytest.raises(ProtocolError):
        measure_profile(loaded(), CpuExecutor, segments, reruns, margin)


def test_reruns_that_part_as_far_as_the_training_goes_leave_no_document() -> None:
    portion = short().claim.portions[0]
    far = claim(1, [portion], [Rerun(portion.end, portion.references)] * 2)
    with pytest.raises(UnsupportedError, match="shorter"):
        replace(short(), claim=far).encode()


def edit(change: Callable[[dict[str, Any]], object]) -> bytes:
    """A profile with some members changed."""
    document = json.loads(short().encode())
    change(document)
    return rfc8785.dumps(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(thresholds=["1", *d["thresholds"][1:]]),
        lambda d: d.update(margin=d["margin"] + 1),
        lambda d: d.update(margin=0),
        lambda d: d.update(margin=1 << 16),
        lambda d: d.update(root="00" * 32),
        lambda d: d.update(coverage="99/100"),
        lambda d: d.update(spreads=d["spreads"][:2]),
        lambda d: d.update(witnesses=[0, 0, 2]),
        lambda d: d.update(witnesses=[-1, 0, 0]),
        lambda d: d.update(witnesses=[0, 0]),
        lambda d: d.update(programs=d["programs"][:1]),
        lambda d: d.update(programs=[1, 2]),
        lambda d: d["reruns"].pop(),
        lambda d: d["portions"].append(d["portions"][0]),
        lambda d: d["portions"].clear(),
        lambda d: d["portions"][0].update(elements=[-1, 0, 0]),
        lambda d: d["reruns"][0].update(l1=d["reruns"][0]["l1"][:2]),
        lambda d: d["reruns"][0].update(distances=[str(1 << 256), "0", "0"]),
        lambda d: d["reruns"][0].update(distances=["1", "2", "3"]),
        lambda d: d["reruns"][0].update(more=1),
        lambda d: d.update(thresholds=[int(t) for t in d["thresholds"]]),
        lambda d: d.update(version=1),
        lambda d: d.update(extra=1),
    ],
)
def test_a_document_that_is_no_profile_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    assert Profile.decode(edit(lambda d: None)) == short()
    with pytest.raises(ProtocolError):
        Profile.decode(edit(change))


def test_a_profile_of_another_task_is_refused() -> None:
    store, _ = published()
    digest = store.put(profiled().encode())
    assert load_profile(store, digest, loaded()) == profiled()
    with pytest.raises(ProtocolError, match="not of task"):
        load_profile(store, digest, loaded(order_seed=2))


def test_ends_of_reruns_differ() -> None:
    """Else nothing was reordered."""
    ends = [rerun.end for rerun in profiled().claim.reruns]
    assert len(set(ends)) == len(ends)
    assert all(a.end != b.end for a, b in pairwise(profiled().claim.portions))


KEY, OTHER = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32), Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)


def test_a_signed_profile() -> None:
    envelope = sign(profiled(), KEY)
    assert envelope == sign(profiled(), KEY)
    verify(envelope, profiled(), [KEY.public_key()])
    with pytest.raises(ProtocolError, match="signed by 0"):
        verify(envelope, profiled(), [OTHER.public_key()])
    with pytest.raises(ProtocolError, match="signed by 1"):
        verify(envelope, profiled(), [KEY.public_key(), OTHER.public_key()], threshold=2)


def test_other_tools_verify_it() -> None:
    peer = Envelope.from_dict(json.loads(sign(profiled(), KEY)))
    public = KEY.public_key().public_bytes_raw().hex()
    assert peer.verify([SSlibKey(public, "ed25519", "ed25519", {"public": public})], 1)
    found = json.loads(peer.payload)
    assert found["subject"][0]["name"] == profiled().digest.hex()
    assert found["predicate"]["task"] == profiled().task


def test_an_envelope_about_something_else() -> None:
    thin = replace(profiled(), claim=replace(profiled().claim, margin=1))
    other_task = replace(profiled(), task="00" * 32)
    other_type = dsse_envelope.seal("text/plain", canonical_json.encode(statement(profiled())), KEY).encode()
    for envelope in (sign(thin, KEY), sign(other_task, KEY), other_type):
        with pytest.raises(ProtocolError, match="not about profile"):
            verify(envelope, profiled(), [KEY.public_key()])
