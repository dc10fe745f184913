"""Gradients and optimizers of loops that are killed: the resumption is equal to the whole run, or refused."""

import gc
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from lab.benchmarks import resumed_loops
from lab.benchmarks.resumed_loops import EPOCHS, Kill, Training, loader
from pol import Recorder
from pol.errors import ProtocolError
from pol.training import Checkpoints
from pol.training.state.followed_gradient import Followed


def test_an_optimizers_tensors_lie_in_memory_as_they_did(tmp_path: Path) -> None:
    def resumed() -> tuple[Recorder, Tensor, torch.optim.Optimizer]:
        model = nn.Conv2d(3, 4, 2).to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch has it
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        recorder = Recorder(f"file://{tmp_path}", model, optimizer, every=1)
        recorder.resume()
        return recorder, model.weight, optimizer

    recorder, weight, optimizer = resumed()
    weight.grad = torch.randn_like(weight)
    optimizer.step()
    recorder.step()
    recorder.close()
    held = optimizer.state[weight]["momentum_buffer"]
    _, weight, optimizer = resumed()
    again = optimizer.state[weight]["momentum_buffer"]
    assert torch.equal(again, held)
    assert again.stride() == held.stride() != held.contiguous().stride()


def test_a_recorder_that_nobody_holds_any_more_leaves_an_update_alone(tmp_path: Path) -> None:
    """The garbage collector takes it in the midst of one, between two hooks of torch."""
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def collect(*_: Any) -> None:
        gc.collect()

    hooks = [register_optimizer_step_post_hook(collect)]
    left = Recorder(f"file://{tmp_path}", model, optimizer, every=1)
    hooks.append(register_optimizer_step_post_hook(lambda *_: None))
    vars(left)["itself"] = left
    del left
    try:
        optimizer.step()
    finally:
        for hook in hooks:
            hook.remove()


def branched(
    clears: str,
    none: bool = False,
    sparse: bool = False,
    clip: bool = False,
    drawn: bool = False,
    dtype: torch.dtype = torch.float32,
    every: int = resumed_loops.EVERY,
    other: int = 2,
    recorded: bool = False,
) -> resumed_loops.Loop:
    """Steps without a loader, or with one that they only draw from; every fifth uses the other one of two heads.

    They clear gradients at the top, before the recorder's step, at the end of a step, those of this head alone, or
    never; or they set them, or clear them behind autograd's back.
    """

    def run(t: Training) -> None:
        heads = nn.ModuleList(nn.Embedding(5, 3, sparse=sparse, dtype=dtype) for _ in range(2))
        t.model = heads  # type: ignore[assignment]  # another model
        t.optimizer = torch.optim.SGD(
            heads.parameters(), 0.1, momentum=0 if sparse else 0.9, weight_decay=0 if sparse else 0.1
        )
        recorder = t.record(every=every, checkpoints=Checkpoints(background=False, gradients=recorded))
        made, first = loader(), recorder.resume()
        batches = (batch for _ in range(first, 2) for batch in recorder.batches(made))
        for _ in batches if drawn else iter(lambda: recorder.steps < 12, False):
            head = heads[recorder._steps % 5 == other]
            if clears == "top":
                t.optimizer.zero_grad(none)
            for parameter in heads.parameters() if clears == "data" else head.parameters() if clears == "own" else ():
                if parameter.grad is not None:
                    parameter.grad.data.zero_()
            loss = head(torch.randint(0, 5, (4,))).square().mean()
            if clears == "sets":
                heads.zero_grad()
                (weight,) = head.parameters()
                weight.grad = torch.autograd.grad(loss, weight)[0]
            else:
                loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(heads.parameters(), 0.1)
            t.optimizer.step()
            if clears == "before":
                t.optimizer.zero_grad(none)
            recorder.step()
            t.at("step")
            if clears == "end":
                t.optimizer.zero_grad(none)
        recorder.close()

    return run


@pytest.mark.long
@pytest.mark.parametrize(
    ("clears", "options"),
    [
        *((clears, {"none": none}) for clears in ("top", "before", "end") for none in (True, False)),
        ("top", {"clip": True}),
        ("end", {"clip": True, "none": True}),
        *((clears, {"sparse": True}) for clears in ("top", "end")),
        *(("data", {"dtype": dtype}) for dtype in (torch.bfloat16, torch.float64)),
        ("sets", {}),
        *(("end", {"recorded": True, "clip": True, "none": none}) for none in (True, False)),
    ],
)
def test_gradients_that_are_zeros_are_put_back_as_zeros(clears: str, options: dict[str, Any]) -> None:
    loop, name = branched(clears, **options), f"memory://{clears}{options}"
    whole = resumed_loops.launch(loop, name)
    for cuts in ([Kill(3)], [Kill(4), Kill(7)], [Kill(8), Kill(9)], [Kill(5), Kill(11)]):
        assert resumed_loops.outcome(loop, cuts, f"{name}{cuts}", whole) == "equal", cuts


@pytest.mark.parametrize("options", [{}, {"clip": True}])
def test_gradients_that_steps_add_to_are_refused_unless_they_are_recorded(options: dict[str, Any]) -> None:
    loop, name = branched("never", **options), f"memory://never{options}"
    with pytest.raises(ProtocolError, match=r"gradient of 0.weight at the checkpoint is used in the step behind it"):
        resumed_loops.launch(loop, name)
    loop = branched("never", recorded=True, **options)
    whole = resumed_loops.launch(loop, f"{name}-recorded")
    assert resumed_loops.outcome(loop, [Kill(5)], f"{name}-cut", whole) == "equal"


def test_recorded_gradients_that_a_loop_without_a_loader_clears_at_times_are_refused() -> None:
    """It may do so behind its checkpoint, and then a resumption uses them."""
    with pytest.raises(ProtocolError, match=r"gradient of 0.weight at the checkpoint is in it, and the loop clears"):
        resumed_loops.launch(branched("own", recorded=True), "memory://own-recorded")


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_left_from_before_a_checkpoint_that_clipping_scales_are_refused(
    drawn: bool, dtype: torch.dtype
) -> None:
    """In the run itself; and behind a resumption, if it was killed before it could show them."""
    loop, name = branched("own", clip=True, drawn=drawn, dtype=dtype), f"memory://own-{drawn}-{dtype}"
    with pytest.raises(ProtocolError, match=r"gradient of 0.weight at the checkpoint is used in the step behind it"):
        resumed_loops.launch(loop, name)
    found = resumed_loops.outcome(loop, [Kill(2)], f"{name}-2", None)
    assert found.startswith("refused: the gradient of "), found


def by_hand(clears: str = "", drawn: bool = True, recorded: bool = False) -> resumed_loops.Loop:
    """Steps that set gradients by hand, or that have two heads with an optimizer each.

    They add to a gradient in place, to another one in its place; or they clear the second head behind all that a step
    uses, and scale both heads' gradients by their norm, or read it; or they clear one head to None, the other by zeros.
    """

    def run(t: Training) -> None:
        heads = nn.ModuleList(nn.Linear(3, 1) for _ in range(2))
        t.model = heads  # type: ignore[assignment]  # another model
        t.optimizer = torch.optim.SGD(heads[0].parameters(), 0.1, momentum=0.9, weight_decay=0.1)
        other = torch.optim.SGD(heads[1].parameters(), 0.1, momentum=0.9, weight_decay=0.1)
        kept = Checkpoints(background=False, gradients=recorded)
        recorder = t.record(parts={"other": other}, checkpoints=kept)
        made, first = loader(), recorder.resume()
        batches = (batch for _ in range(first, EPOCHS) for batch in recorder.batches(made))
        for batch in batches if drawn else iter(lambda: torch.rand(4, 3) if recorder.steps < 12 else None, None):
            head = heads[recorder._steps % 3 == 1]
            loss = head(batch).square().mean()
            if clears in ("adds", "replaces"):
                for parameter, gradient in zip(
                    head.parameters(), torch.autograd.grad(loss, list(head.parameters())), strict=True
                ):
                    if parameter.grad is None:
                        parameter.grad = gradient
                    elif clears == "adds":
                        parameter.grad.mul_(0.5).add_(gradient)
                    else:
                        parameter.grad = parameter.grad * 0.5 + gradient
            else:
                loss.backward()
            if clears == "clips":
                nn.utils.clip_grad_norm_(heads.parameters(), 0.1)
            rate = 0.1 / (1 + float(nn.utils.get_total_norm(p.grad for p in heads.parameters() if p.grad is not None)))
            if clears == "reads":
                t.optimizer.param_groups[0]["lr"] = rate
            t.optimizer.step()
            if clears in ("clips", "reads"):
                t.optimizer.zero_grad()
                if recorder._steps % 2 == 0:
                    other.step()
                    other.zero_grad()
            else:
                other.step()
            recorder.step()
            t.at("step")
            if clears == "apart":
                t.optimizer.zero_grad()
                other.zero_grad(set_to_none=False)
        recorder.close()

    return run


@pytest.mark.long
@pytest.mark.parametrize("clears", ["adds", "replaces", "clips", "reads", "apart"])
def test_gradients_that_a_loop_does_not_clear_before_it_uses_any_are_in_its_checkpoints(clears: str) -> None:
    loop, name = by_hand(clears), f"memory://by-hand-{clears}"
    whole = resumed_loops.launch(loop, name)
    for cuts in ([Kill(3)], [Kill(4), Kill(7)], [Kill(8), Kill(9)], [Kill(5), Kill(11)], [Kill(1)], [Kill(6)]):
        assert resumed_loops.outcome(loop, cuts, f"{name}{cuts}", whole) == "equal", cuts


@pytest.mark.parametrize(
    ("clears", "recorded", "words"),
    [("adds", False, "is changed in place"), ("adds", True, "is changed in place"), ("clips", False, "is used")],
)
def test_gradients_that_a_loop_without_a_loader_uses_of_before_a_checkpoint_are_refused(
    clears: str, recorded: bool, words: str
) -> None:
    with pytest.raises(ProtocolError, match=f"gradient of [01].weight at the checkpoint {words} in the step behind it"):
        resumed_loops.launch(by_hand(clears, drawn=False, recorded=recorded), f"memory://no-loader-{clears}-{recorded}")


def test_optimizers_that_a_loop_without_a_loader_clears_each_in_its_way() -> None:
    """Behind a step: where both ways were seen, a resumption is equal."""
    loop, name = by_hand("apart", drawn=False), "memory://no-loader-apart"
    whole = resumed_loops.launch(loop, name)
    for cuts, ended in (([Kill(2)], "refused"), ([Kill(4), Kill(7)], "equal"), ([Kill(8), Kill(9)], "equal")):
        found = resumed_loops.outcome(loop, cuts, f"{name}{cuts}", whole)
        assert found.startswith(ended), (cuts, found)


@pytest.mark.parametrize(("size", "begin"), [(7, 4), (5000, 3000), (5000, 4990)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_what_clipping_scales_is_told_from_another_gradient_in_its_place(
    size: int, begin: int, dtype: torch.dtype
) -> None:
    """Also of rows that are far behind the first ones, as those of an embedding."""
    draw = torch.Generator().manual_seed(1)
    parameter = nn.Parameter(torch.zeros(size, dtype=dtype))
    gradient = parameter.grad = torch.zeros(size, dtype=dtype)
    gradient[begin:] = torch.randn(size - begin, generator=draw).to(dtype)
    followed = Followed("weight", parameter, gradient)
    gradient.mul_(0.037)
    assert followed.is_scaled
    gradient[begin:] = torch.randn(size - begin, generator=draw).to(dtype)
    assert not followed.is_scaled


@pytest.mark.parametrize("clears", ["top", "before", "end"])
@pytest.mark.parametrize("none", [True, False])
def test_a_first_step_behind_which_nothing_has_shown_how_gradients_are_cleared(clears: str, none: bool) -> None:
    """A loop that clears at the end of a step hasn't at its first checkpoint, and leaves a head out in the next."""
    loop, name = branched(clears, none, every=1, other=1), f"memory://first-{clears}-{none}"
    whole = resumed_loops.launch(loop, name)
    found = resumed_loops.outcome(loop, [Kill(1)], f"{name}-1", whole)
    refused = "refused: the gradient of 0.weight at the checkpoint may be cleared at the end of a step"
    assert found.startswith(refused if clears == "end" else "equal"), found
    assert resumed_loops.outcome(loop, [Kill(2), Kill(6)], f"{name}-2", whole) == "equal"


def test_gradients_that_are_asked_for_and_set_are_no_sums() -> None:
    """And nothing is said of them, nor of an inner optimizer that is made anew in each step."""

    def run(t: Training) -> None:
        data = loader()

        def step(batch: Tensor) -> float:
            inner = torch.optim.Adam(t.model.parameters(), 1e-2)
            found = torch.autograd.grad(t.model(batch).square().mean(), list(t.model.parameters()))
            for parameter, gradient in zip(t.model.parameters(), found, strict=True):
                parameter.grad = gradient
            inner.step()
            t.recorder.step()
            t.at("step")
            return 0.0

        t.step = step  # type: ignore[method-assign]  # another step
        t.loop(lambda epoch: t.recorder.batches(data))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = resumed_loops.launch(run, "memory://set")
        assert resumed_loops.outcome(run, [Kill(3), Kill(8)], "memory://set-cut", whole) == "equal"


@pytest.mark.parametrize("drawn", [True, False])
def test_gradients_that_nobody_uses(drawn: bool) -> None:
    """Those of a critic that a generator's loss flows through, and of a layer that no optimizer has.

    They are in the checkpoints of a loop with a loader, and told once where a loop has none.
    """

    def run(t: Training) -> None:
        critic, free = nn.Linear(3, 3), nn.Linear(3, 3)
        t.model = nn.Sequential(t.model, critic, free)
        t.optimizer = torch.optim.SGD(t.model[0].parameters(), 0.1)
        of_critic = torch.optim.SGD(critic.parameters(), 0.1)

        def step(batch: Tensor) -> float:
            if t.recorder._steps % 3 == 0:
                of_critic.zero_grad()
                critic(batch).square().mean().backward()
                of_critic.step()
            t.optimizer.zero_grad()
            t.model[0](free(critic(batch))).square().mean().backward()
            t.optimizer.step()
            t.recorder.step()
            t.at("step")
            return 0.0

        made = loader()
        t.step = step  # type: ignore[method-assign]  # another step
        by_hand = (torch.rand(4, 3) for _ in iter(lambda: t.recorder.steps < 6, False))
        with suppress(ZeroDivisionError):  # that is the end of a loop without a loader
            t.loop(lambda epoch: t.recorder.batches(made) if drawn else by_hand, parts={"critic": of_critic})

    if not drawn:
        with pytest.warns(UserWarning, match="gradients of 2.(weight|bias), which no recorded optimizer has"):
            resumed_loops.launch(run, "memory://nobody-by-hand")
        return
    whole = resumed_loops.launch(run, "memory://nobody")
    for cuts in ([Kill(1)], [Kill(3), Kill(4)], [Kill(5), Kill(12)], [Kill(8)]):
        assert resumed_loops.outcome(run, cuts, f"memory://nobody-{cuts}", whole) == "equal", cuts


@pytest.mark.parametrize("remembers", [True, False])
def test_an_optimizer_that_the_recorder_lacks_is_refused_or_told(remembers: bool) -> None:
    made = torch.optim.AdamW if remembers else torch.optim.SGD

    def run(t: Training) -> None:
        data = loader()

        def batches(epoch: int) -> Any:
            t.optimizer = made(t.model.parameters(), lr=1e-2)
            return t.recorder.batches(data)

        t.loop(batches)

    words = f"updated by an optimizer .{made.__name__}. that the recorder doesn't have"
    with pytest.raises(ProtocolError, match=words) if remembers else pytest.warns(UserWarning, match=words):
        resumed_loops.launch(run, f"memory://made-anew-{remembers}")


def test_an_optimizer_inside_of_a_part_is_the_recorders() -> None:
    """And nothing is said, as warnings are errors."""

    class Both(dict[int, Any]):
        def __init__(self, model: nn.Module) -> None:
            super().__init__(enumerate(torch.optim.AdamW([parameter]) for parameter in model.parameters()))

        def state_dict(self) -> list[Any]:
            return [one.state_dict() for one in self.values()]

        def load_state_dict(self, state: list[Any]) -> None:
            for one, held in zip(self.values(), state, strict=True):
                one.load_state_dict(held)

    def run(t: Training) -> None:
        both, data = Both(t.model[0]), loader()
        t.optimizer = torch.optim.SGD(t.model[2].parameters(), 0.1)

        def batches(epoch: int) -> Iterator[Any]:
            for batch in t.recorder.batches(data):
                yield batch
                for one in both.values():
                    one.step()
                    one.zero_grad()

        t.loop(batches, parts={"both": both})

    resumed_loops.launch(run, "memory://inner")


def test_groups_and_state_of_an_optimizer_stay_the_objects_that_they_were() -> None:
    """Another optimizer has them, as SAM has those of the one inside, or the loop."""

    def run(t: Training) -> None:
        t.optimizer, data = torch.optim.SGD(t.model.parameters(), 0.1, momentum=0.9), loader()
        outer = torch.optim.SGD(t.model.parameters(), 0.1)
        outer.param_groups = t.optimizer.param_groups
        (group,), state = outer.param_groups, t.optimizer.state

        def batches(epoch: int) -> Iterator[Tensor]:
            for batch in t.recorder.batches(data):
                group["weight_decay"] += 0.1
                yield batch
                outer.param_groups[0]["lr"] *= 0.9
                for of_one in state.values():
                    of_one["momentum_buffer"] *= 0.9

        t.loop(batches, parts={"outer": outer})

    whole = resumed_loops.launch(run, "memory://groups")
    for cuts in ([Kill(5)], [Kill(7), Kill(13)]):
        assert resumed_loops.outcome(run, cuts, f"memory://groups-{cuts}", whole) == "equal", cuts


def test_an_optimizer_inside_of_another_one_that_gives_its_own_state_alone_is_refused() -> None:
    class Outer(torch.optim.Optimizer):
        def __init__(self, model: nn.Module) -> None:
            super().__init__(model.parameters(), {"lr": 0.1, "momentum": 0.9})
            self.base = torch.optim.SGD(self.param_groups, 0.1, momentum=0.9)
            self.param_groups = self.base.param_groups

        def step(self, closure: Any = None) -> None:  # type: ignore[override]  # none is used
            self.base.step()

    def run(t: Training) -> None:
        t.optimizer, data = Outer(t.model), loader()
        t.optimizer.step = t.optimizer.base.step  # as SAM, which has steps of other names
        t.loop(lambda epoch: t.recorder.batches(data))

    with pytest.raises(
        ProtocolError, match=r"0.weight is updated by an optimizer .SGD. that the recorder doesn't have"
    ):
        resumed_loops.launch(run, "memory://outer")
