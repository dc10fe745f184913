"""Loops as people write them, killed at each kind of place: the resumption is equal to the whole run, or refused."""

import copy
import itertools
import random
import time
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler

import chosen_rows
from lab.benchmarks import doctored_loops, resumed_loops
from lab.benchmarks.resumed_loops import Kill, MadeLate, PlacedStream, Points, Training, loader
from pol import Recorder, Values
from pol.errors import ProtocolError, UnsupportedError
from pol.training.recorder.recorded_training import Background
from pol.training.state.environment import Environment

FEW = [[Kill(3)], [Kill(6, "end"), Kill(7), Kill(9)]]  # `pol bench resume` has all places of a kill
OFTEN = [
    "plain",
    "heads, zeros",
    "shared values",
    "moves by numpy",
    "break by enumerate",
    "zip",
    "validation",
    "told epochs",
    "stream",
    "values",
]


@pytest.mark.parametrize(
    "name",
    chosen_rows.named(sorted(resumed_loops.LOOPS.keys() - resumed_loops.REFUSED), *OFTEN, others=pytest.mark.long),
)
def test_a_killed_loop_is_equal_or_refused(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a loop that the recorder changes, as persistent workers
        whole = resumed_loops.launch(name, f"file://{tmp_path}/whole")
    for number, cuts in enumerate(FEW):
        found = resumed_loops.outcome(name, cuts, f"file://{tmp_path}/{number}", whole).partition(":")[0]
        allowed = {"equal", "not reached"} | ({"refused", "warned"} if name in resumed_loops.PARTLY else set())
        assert found in allowed, cuts


@pytest.mark.parametrize(("name", "reason"), [("held outside", "holds batches back"), ("thread outside", "thread")])
def test_what_holds_batches_back_is_refused_at_once(name: str, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        resumed_loops.launch(name, f"memory://{name}")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (lambda: loader(batch_size=3), "had 6 batches and has 8"),
        (lambda: loader(Points(count=40)), "had 6 batches and has 10"),
        (lambda: loader(Points(lambda: 1.0)), "isn't the one that was used"),
        (lambda: loader(shuffle=False), "isn't the one that was used"),
    ],
    ids=["batch size", "longer", "moved", "order"],
)
@pytest.mark.parametrize("step", [3, 7, 9])
def test_other_data_is_refused_and_may_be_allowed(tmp_path: Path, other: Any, reason: str, step: int) -> None:
    url = f"file://{tmp_path}"
    assert resumed_loops.launch("plain", url, Kill(step)) is None
    made = other()

    def go_on(allow: str = "") -> None:
        t = Training(url)
        recorder = t.record()
        recorder.resume(allow)
        t.step(next(recorder.batches(made)))

    with pytest.raises(ProtocolError, match=reason):
        go_on()
    go_on("other data")
    with pytest.raises(ProtocolError, match="'other data' or nothing"):
        go_on("all")


class Hidden(Sampler[int]):
    """Draws its order from a generator that nothing shows."""

    drawn = itertools.count()

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(24, generator=torch.Generator().manual_seed(next(self.drawn))).tolist())


class Doubled(PlacedStream):
    def __iter__(self) -> Iterator[Tensor]:
        return (2 * batch for batch in super().__iter__())


def other_end() -> DataLoader[Tensor]:
    points = Points()
    points.x[8:] += 1
    return loader(points, shuffle=False)


@pytest.mark.parametrize(
    ("made", "other", "reason"),
    [
        (loader, lambda: loader(Points(lambda: 1.0)), "Drawn twice it is one batch: give the recorded data"),
        (lambda: loader(shuffle=False, sampler=Hidden()), None, "Drawn twice it is two batches: the loader keeps"),
        (lambda: loader(shuffle=False), other_end, "The first one of the epoch is: data behind it has changed"),
        (PlacedStream, Doubled, r"drawn from the recorded state_dict\(\)"),
    ],
    ids=["data", "generator", "behind", "place"],
)
def test_a_refusal_says_which_cause_it_has(tmp_path: Path, made: Any, other: Any, reason: str) -> None:
    def run(make: Any) -> Any:
        def loop(t: Training) -> None:
            data = make()
            t.loop(
                lambda epoch: t.recorder.batches(data), parts={"stream": data} if isinstance(data, PlacedStream) else {}
            )

        return loop

    assert resumed_loops.launch(run(made), f"file://{tmp_path}", Kill(5)) is None
    with pytest.raises(ProtocolError, match=reason):
        resumed_loops.launch(run(other or made), f"file://{tmp_path}")


def recorder_of(parts: dict[str, Any], store: str, model: nn.Module | None = None) -> Recorder:
    return Recorder(store, model or nn.Linear(2, 2), every=1, parts=parts)


class Forgetful:
    def __init__(self, value: int) -> None:
        self.value = value

    def state_dict(self) -> dict[str, int]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.value = state["value"] + 1


def test_an_object_that_restores_another_state_is_refused(tmp_path: Path) -> None:
    first = recorder_of({"average": Forgetful(3)}, f"file://{tmp_path}")
    first.resume()
    first.flush()
    again = recorder_of({"average": Forgetful(3)}, f"file://{tmp_path}")
    with pytest.raises(ProtocolError, match="average/state/value isn't what the checkpoint of step 0 commits to"):
        again.resume()


def test_what_changes_before_the_first_batch_is_put_back(tmp_path: Path) -> None:
    url = f"file://{tmp_path}"
    resumed_loops.launch("plain", url, Kill(3))
    t = Training(url)
    recorder = t.record()
    recorder.resume()
    weight = t.model[0].weight.detach().clone()
    nn.init.zeros_(t.model[0].weight)
    with pytest.warns(UserWarning, match=r"parameters/0.weight had changed between resume\(\)"):
        next(recorder.batches(loader()))
    assert torch.equal(weight, t.model[0].weight)


def by_hand(t: Training, batches: Callable[[], Iterable[Any]], **options: Any) -> None:
    """Steps as long as there are batches, up to twelve."""
    recorder = t.record(**options)
    recorder.resume()
    for batch in itertools.islice(batches(), 12):
        t.step(batch)
    recorder.close()


def permuted(t: Training) -> None:
    """An order for each epoch, drawn from a recorded generator, which a resumption draws anew in its middle."""

    def batches() -> Iterator[Tensor]:
        while t.recorder.steps < 12:
            for rows in torch.randperm(24).split(4):
                yield Points().x[rows]

    by_hand(t, batches)


def kept_order(t: Training) -> None:
    """The same, with order and place in a part."""
    kept = Values(order=[], place=0)

    def batches() -> Iterator[Tensor]:
        while t.recorder.steps < 12:
            if kept.place % 24 == 0:
                kept.order, kept.place = torch.randperm(24).tolist(), 0
            kept.place += 4
            yield Points().x[kept.order[kept.place - 4 : kept.place]]

    by_hand(t, batches, parts={"kept": kept})


def counted_on(t: Training) -> None:
    """A fixed order, which goes on from the steps that are taken."""
    by_hand(t, lambda: (Points().x[(step % 6) * 4 :][:4] for step in range(t.recorder.steps, 12)))


def drawn_for_a_step(t: Training) -> None:
    def batches() -> Iterator[Tensor]:
        while t.recorder.steps < 12:
            yield torch.rand(4, 3) + random.random()

    by_hand(t, batches)


def episodes(t: Training) -> None:
    """Steps that draw different amounts."""

    def batches() -> Iterator[Tensor]:
        while t.recorder.steps < 12:
            yield torch.rand(4, 3) + sum(random.random() for _ in range(random.randrange(9)))

    by_hand(t, batches)


def trained_values(t: Training) -> None:
    """Tensors among values, of which an optimizer trains one and a hook the other: they stay its, and trained."""
    kept = Values(shifts=[torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)])
    t.optimizer.add_param_group({"params": kept.shifts[:1]})

    def update(*_: object) -> None:
        with torch.no_grad():
            kept.shifts[1].sub_(kept.shifts[1].grad.sign())
        kept.shifts[1].grad = None

    t.optimizer.register_step_post_hook(update)
    by_hand(
        t,
        lambda: (Points().x[step * 2 :][:4] + sum(kept.shifts) for step in range(t.recorder.steps, 10)),
        parts={"kept": kept},
    )


@pytest.mark.parametrize("loop", [kept_order, counted_on, drawn_for_a_step, episodes, trained_values])
def test_a_loop_without_a_loader_goes_on_from_a_place_that_it_keeps(loop: Any) -> None:
    """And nothing is said, as warnings are errors."""
    whole = resumed_loops.launch(loop, f"memory://{loop.__name__}")
    for step in (3, 6, 9):
        assert resumed_loops.launch(loop, f"memory://{loop.__name__}{step}", Kill(step)) is None
        assert resumed_loops.launch(loop, f"memory://{loop.__name__}{step}") == whole


@pytest.mark.parametrize("step", [2, 3, 8])
def test_an_order_drawn_for_many_steps_is_told_behind_a_resumption(step: int) -> None:
    assert resumed_loops.launch(permuted, f"memory://permuted{step}", Kill(step)) is None
    with pytest.warns(UserWarning, match="as by torch.randperm, has begun anew in its middle"):
        resumed_loops.launch(permuted, f"memory://permuted{step}")


def test_a_loop_that_asks_for_no_place_is_refused_behind_a_resumption() -> None:
    def run(t: Training) -> None:
        by_hand(t, lambda: Points().x.split(4))

    assert resumed_loops.launch(run, "memory://no-place", Kill(3)) is None
    with pytest.raises(ProtocolError, match="step 3 follows a resumption, and the loop has neither"):
        resumed_loops.launch(run, "memory://no-place")


def test_jobs_of_a_recorder_that_was_left_end_before_another_one_reads(tmp_path: Path) -> None:
    """As in a notebook, where a cell is interrupted and run again."""
    left, stored = Background(), list[str]()

    def store() -> None:
        time.sleep(1)
        stored.append("checkpoint")

    left.start(store)
    recorder_of({}, f"file://{tmp_path}").resume()
    assert stored


def test_values_are_read_and_set_as_attributes(tmp_path: Path) -> None:
    values = Values(best=0.0, bad=0)
    recorder = recorder_of({"values": values}, f"file://{tmp_path}")
    recorder.resume()
    values.best, values.bad = 0.5, 3
    recorder.step()
    recorder.close()
    again = Values(best=0.0, bad=0)
    recorder_of({"values": again}, f"file://{tmp_path}").resume()
    assert (again.best, again.bad) == (0.5, 3)
    with pytest.raises(AttributeError, match="no value worst: name it"):
        _ = again.worst


def test_values_come_back_as_they_were_or_are_refused(tmp_path: Path) -> None:
    def made() -> Values:
        return Values(memory={}, counts=defaultdict(int), seen=Counter(), lists=[{}])

    values, model = made(), nn.Linear(2, 2)
    recorder = recorder_of({"values": values}, f"file://{tmp_path}", model)
    recorder.resume()
    values.memory.update(dict.fromkeys([3, 1, 2, "b", "a"], 0.5))
    values.lists = [{"z": 1, "y": {(2, 1): 0, (1, 2): 0}}]
    values.counts["x"] += 1
    values.seen["x"] += 1
    recorder.step()
    recorder.close()
    again = made()
    recorder_of({"values": again}, f"file://{tmp_path}").resume()
    for name, value in values.state_dict().items():
        assert repr(again.state_dict()[name]) == repr(value)
    again.counts["new"] += 1
    values.memory = {"best": model.state_dict()}
    with pytest.raises(UnsupportedError, match="values/memory/best/weight is the model's own tensor"):
        recorder.step()


@pytest.mark.parametrize(
    "value",
    [
        deque([1, {2: 3}], maxlen=3),
        deque(),
        Counter("aab"),
        OrderedDict(b=1, a=2),
        defaultdict(list, b=[1], a=[]),
        defaultdict(dict, b={}),
        defaultdict(None, a=1),
        frozenset({1, 2}),
    ],
    ids=repr,
)
def test_collections_stay_what_they_are(value: Any, tmp_path: Path) -> None:
    values = Values(one=None, two=[])
    recorder = recorder_of({"values": values}, f"file://{tmp_path}")
    recorder.resume()
    values.one, values.two = value, [(value,), copy.deepcopy(value)]
    recorder.step()
    recorder.close()
    again = Values(one=None, two=[])
    recorder_of({"values": again}, f"file://{tmp_path}").resume()
    (first,), second = again.two
    for found in (again.one, first, second):
        assert (type(found), repr(found)) == (type(value), repr(value))
    assert (first is again.one) == (not isinstance(value, frozenset))
    assert second is not first


def test_a_function_that_makes_missing_values_is_named_or_given_again(tmp_path: Path) -> None:
    def made(**missing: Any) -> Values:
        return Values(**{"known": defaultdict(lambda: 7), "other": None, **missing})

    values = made()
    recorder = recorder_of({"values": values}, f"file://{tmp_path}")
    recorder.resume()
    values.known["a"] += 1
    values.other = defaultdict(lambda: 9)
    recorder.step()
    recorder.close()
    again = made()
    recorder_of({"values": again}, f"file://{tmp_path}").resume()
    assert (again.known["a"], again.known["b"]) == (8, 7)
    with pytest.raises(ProtocolError, match="a checkpoint can't name the function that makes missing values"):
        again.other["a"]
    values.other = [defaultdict(lambda: 9)]
    with pytest.raises(UnsupportedError, match=r"values/other/0 makes missing values by .*: use int"):
        recorder.state.components()


def begun(folder: Path, **options: int) -> Training:
    t = Training(f"file://{folder}")
    t.record(**options).resume()
    return t


def test_steps_that_share_a_batch_have_no_checkpoint_between_them(tmp_path: Path) -> None:
    t = begun(tmp_path, every=3)
    first, second = itertools.islice(t.recorder.batches(made := loader()), 2)
    drawn = t.recorder.batches(made)
    for batch in (first, first, next(drawn)):
        t.step(batch)
    with pytest.raises(ProtocolError, match="steps 3 and 4 were taken with one batch"):
        t.step(second)


def test_a_validation_through_the_loader_of_the_steps_needs_a_name(tmp_path: Path) -> None:
    t = begun(tmp_path)
    made = loader()
    for batch in t.recorder.batches(made):
        t.step(batch)
    assert len(list(t.recorder.batches(made, name="validation"))) == len(list(t.recorder.batches(made, uneven=True)))
    with pytest.raises(ProtocolError, match="'data' ended without a step"):
        list(t.recorder.batches(made))


def test_one_loader_has_one_name(tmp_path: Path) -> None:
    t = begun(tmp_path)
    one, other = loader(), loader()
    t.recorder.batches(one)
    with pytest.raises(ProtocolError, match="two loaders are called 'data'"):
        t.recorder.batches(other)
    twice: Iterator[Any] = zip(t.recorder.batches(one), t.recorder.batches(one), strict=True)
    with pytest.raises(ProtocolError, match="two iterations over the loader 'data'"):
        list(twice)


def test_a_generator_of_the_loader_has_its_own_name(tmp_path: Path) -> None:
    t = begun(tmp_path)
    made = loader(Points(np.random.default_rng(1).random), generator=torch.Generator())
    next(t.recorder.batches(made))
    assert set(t.recorder.state.random.named) == {"data.generator", "data.dataset.move.self"}


def test_a_generator_that_is_made_by_the_first_draw_is_recorded_from_there(tmp_path: Path) -> None:
    """Else the states of a resumed epoch, which draws its batches again, have an entry more."""
    t = begun(tmp_path)
    next(t.recorder.batches(loader(shuffle=False, sampler=MadeLate(counts=False))))
    assert set(t.recorder.state.random.named) == {"data.sampler.generator"}


MODES: dict[str, Any] = {
    "flush_denormal": (torch.set_flush_denormal, True, False),
    "deterministic_warn_only": (lambda on: torch.use_deterministic_algorithms(on, warn_only=on), True, False),
    "mkldnn": (torch._C._set_mkldnn_enabled, False, True),
    "fp32_precision": (lambda p: setattr(torch.backends.cuda.matmul, "fp32_precision", p), "tf32", "none"),
    "float32_matmul_precision": (torch.set_float32_matmul_precision, "high", "highest"),
}


@pytest.mark.parametrize("name", MODES)
def test_the_environment_holds_modes_that_change_bits(name: str) -> None:
    """Also when switches were set by both of torch's interfaces, which then refuses to read the older one."""
    change, other, usual = MODES[name]
    before = Environment([]).state()["modes"]
    try:
        change(other)
        now = Environment([]).state()["modes"]
        assert name in {mode for mode, value in now.items() if before[mode] != value}
        torch.backends.cuda.matmul.fp32_precision = "ieee"
        Environment([]).state()
    finally:
        change(usual)
        torch.backends.cuda.matmul.fp32_precision = "none"


def test_data_that_the_loop_changes_is_named(tmp_path: Path) -> None:
    """Once, in the epoch and behind it; what drawing itself changes isn't."""
    t = begun(tmp_path)
    made = loader(data := Points())
    for _ in range(2):
        t.step(next(iter(t.recorder.batches(made))))
    data.x.mul_(2)
    with pytest.warns(UserWarning, match=r"the loop has changed dataset.x\[0\] of the loader 'data'"):
        t.step(next(iter(t.recorder.batches(made))))
    data.x.mul_(2)
    t.step(next(iter(t.recorder.batches(made))))


def test_a_loader_that_is_cycled_beside_another_one_is_named(tmp_path: Path) -> None:
    t = begun(tmp_path)
    short = itertools.cycle(t.recorder.batches(loader(Points(count=8)), name="short"))
    both = zip(t.recorder.batches(loader()), short, strict=False)
    with pytest.warns(UserWarning, match="after short has ended: batches that itertools.cycle keeps are lost"):
        _ = [t.step(torch.cat(batches)) for batches in both]


def test_values_that_share_an_object_share_it_again(tmp_path: Path) -> None:
    def made() -> dict[str, Any]:
        first = [0]
        return {"one": Values(a=first, held={"x": [first, {}]}), "two": Values(b=first, c=[(1, ([first], first))])}

    parts = made()
    recorder = recorder_of(parts, f"file://{tmp_path}")
    recorder.resume()
    parts["one"].a.append(3)
    recorder.step()
    recorder.close()
    again = made()
    again["two"].b = [9]
    recorder_of(again, f"file://{tmp_path}").resume()
    assert again["two"].b is again["one"].a is again["one"].held["x"][0]
    assert again["two"].b == [0, 3]
    assert again["two"].c == [(1, ([[0, 3]], [0, 3]))]
    assert again["two"].c[0][1][0][0] is again["two"].c[0][1][1] is again["one"].a


def test_a_cache_of_what_was_drawn_at_random_is_told() -> None:
    with pytest.warns(UserWarning, match="drawing at random fills dataset.cache of the loader 'data'"):
        resumed_loops.launch(doctored_loops.caching, "memory://cache")
