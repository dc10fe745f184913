"""Captures that would be another training are refused by the self-check; those of honest steps aren't."""

import copy
import ctypes
import platform
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

import pol
from lab.benchmarks.drawn_programs import Drawn, drawn, is_another_training
from operation_samples import graph_of
from pol.errors import UnsupportedError
from pol.execution.self_check.node_check import NodeCheck, fold_lengths
from pol.graph.capture import Capture, Loop, capture
from pol.graph.capture.tracing.training_step import DataAssignments
from pol.graph.lowering import RULES, lower
from pol.graph.lowering.call import Call
from pol.graph.lowering.values import Value, flip

ROWS = torch.tensor([[1.0, 2.0, 3.0, 0.3], [0.5, -1.0, 2.5, -0.7], [7.0, 0.1, -0.2, 4.0]]).repeat(4, 1)
LABELS = torch.tensor([0, 1, 2]).repeat(4)
ORDER = torch.arange(12).reshape(3, 4)


class Net(nn.Module):
    def __init__(self, change: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.frozen = nn.Linear(4, 3), nn.Linear(4, 4).requires_grad_(False)
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.layer(self.change(self, x))
        return scores


def captured(change: Callable[[Any, Tensor], Tensor], check: bool = True, loop: Loop | None = None) -> Capture:
    net = Net(change)
    optimizer = torch.optim.SGD(net.layer.parameters(), lr=0.1)
    return capture(net, functional.cross_entropy, optimizer, (ROWS, LABELS), ORDER, loop or Loop(), check=check)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], None]:
    """Puts other rules in place of the table's."""

    def put(operation: str, lower: Any) -> None:
        monkeypatch.setitem(RULES, operation, replace(RULES[operation], lower=lower))

    return put


def round_upwards(is_on: bool) -> None:
    ctypes.CDLL(None).fesetround(0x800 if is_on else 0)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of modes are the processor's")
@pytest.mark.parametrize(
    ("change", "reason"),
    [(torch.set_flush_denormal, "flushes subnormal numbers to zero"), (round_upwards, "doesn't round to nearest")],
)
def test_modes_in_which_torch_has_other_bits_are_refused(change: Callable[[bool], Any], reason: str) -> None:
    change(True)
    try:
        with pytest.raises(UnsupportedError, match=f"torch {reason} in this process"):
            captured(lambda net, x: x)
    finally:
        change(False)


def test_a_quotient_that_is_rounded_otherwise_is_refused(rules: Callable[[str, Any], None]) -> None:
    rules("aten.floor_divide.default", RULES["aten.div.Tensor"].lower)  # as it was: no rounding down at all
    with pytest.raises(UnsupportedError, match=r"test_self_check.py:\d+.*floor_divide.*gives .* in the program and"):
        captured(lambda net, x: x // 0.1)


def test_words_that_lose_their_digits_are_no_difference() -> None:
    """Below the least normal number torch's vectorized functions give zero."""
    captured(lambda net, x: x + torch.sigmoid(-99 * x))


def test_ties_that_are_taken_in_another_order_are_refused(rules: Callable[[str, Any], None]) -> None:
    """The operands that are hard on definitions hold the ties: the data don't."""

    sort = RULES["aten.sort.default"].lower

    def other_places(call: Call) -> Value | tuple[Value, ...]:
        values, _ = sort(call)  # type: ignore[misc]  # two results
        ascending = replace(call.node, arguments=(*call.node.arguments[:2], False))
        _, places = sort(replace(call, node=ascending))  # type: ignore[misc]  # two results
        return values, flip(places, [-1])

    rules("aten.sort.default", other_places)
    with pytest.raises(UnsupportedError, match=r"sort"):
        captured(lambda net, x: x + x.sort(-1, descending=True).indices)


def test_an_assignment_that_the_trace_loses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A momentum update of frozen weights, as MoCo writes it; the trace sees nothing of it."""

    def momentum(net: Net, x: Tensor) -> Tensor:
        net.frozen.weight.data = net.frozen.weight.data * 0.9 + net.layer.weight.detach().mean() * 0.1
        return net.frozen(x)  # type: ignore[no-any-return]  # torch declares Any

    monkeypatch.setattr(DataAssignments, "_assign", lambda self, tensor, value: None)
    with pytest.raises(UnsupportedError, match=r"differs from your own step's|another training"):
        captured(momentum)
    assert captured(momentum, check=False).program.nodes


@pytest.mark.parametrize("computed", [False, True])
def test_labels_among_floats_are_trained(computed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hard operands make computed labels of no class; torch's backward of single losses writes wherever they point."""
    alone, compared = list[str](), NodeCheck._compared

    def noted(self: NodeCheck, position: int, words: Any, is_drawn: bool) -> Any:
        alone.extend([self._graph.nodes[position].operation] * (not is_drawn))
        return compared(self, position, words, is_drawn)

    def loss(scores: Tensor, labels: Tensor) -> Tensor:
        chosen = (labels * 4).long() if computed else labels.long()
        return functional.cross_entropy(scores, chosen, reduction="none").sum()

    monkeypatch.setattr(NodeCheck, "_compared", noted)
    own, targets = nn.Linear(4, 3), LABELS * 0.25 if computed else LABELS.float()
    twin = copy.deepcopy(own)
    step = pol.exact(own, loss, torch.optim.SGD(own.parameters(), lr=0.01), steps=4)
    for _ in range(3):
        expected = loss(twin(ROWS), targets)
        gradients = torch.autograd.grad(expected, [*twin.parameters()])
        for parameter, gradient in zip(twin.parameters(), gradients, strict=True):
            parameter.data -= 0.01 * gradient
        assert float(step(ROWS, targets)) == pytest.approx(expected.item(), rel=1e-5)
    assert alone.count("aten.nll_loss_forward.default") == 2
    assert alone.count("aten.nll_loss_backward.default") == 2 - computed
    if not computed:
        with pytest.raises(UnsupportedError, match=r"data\.1 holds -9223372036854775808, but there are 3 classes"):
            step(ROWS, targets * torch.nan)


def test_integers_that_wrap_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pol.graph.capture.assemble.require_integers_fit", lambda *_: None)
    with pytest.raises(UnsupportedError, match=r"in the program and"):
        captured(lambda net, x: x + ((x * 9).long() * 1000003 * 1009).remainder(1009).float())


def test_a_clip_that_is_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop around the optimizer is compared too: here gradients are halved in the program alone."""
    monkeypatch.setattr(Loop, "clipped", lambda self, gradients: {name: g * 0.5 for name, g in gradients.items()})
    with pytest.raises(UnsupportedError, match="the next layer"):
        captured(lambda net, x: x, loop=Loop(clip_norm=100.0))


def test_the_users_objects_stay_as_they_were() -> None:
    """Numbers, memory, gradients, optimizer state and generators."""
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net[0].weight.grad = torch.ones(4, 4)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    memory = [p.data_ptr() for p in net.parameters()]
    state, grad = torch.get_rng_state(), net[0].weight.grad
    capture(net, functional.cross_entropy, optimizer, (ROWS, LABELS), ORDER)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert [p.data_ptr() for p in net.parameters()] == memory
    assert net[0].weight.grad is grad
    assert not optimizer.state
    assert torch.equal(torch.get_rng_state(), state)


def test_a_step_that_fails_with_numbers_is_named() -> None:
    """A trace has no numbers, so it doesn't see an assertion about them."""

    def refuses(net: Net, x: Tensor) -> Tensor:
        torch._assert_async((x < 5).all())
        return x

    with pytest.raises(UnsupportedError):
        captured(refuses)


CHOICES = st.lists(st.integers(0, 2**16), min_size=16, max_size=16)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(CHOICES, st.integers(0, 2**16))
def test_drawn_programs_are_the_users_training_or_are_refused(choices: list[int], seed: int) -> None:
    """`pol bench capture` draws 2,000 of them."""
    left = iter(choices)
    step = drawn(lambda below: next(left) % below, seed)
    refusal = ""
    try:
        found = step.captured()
    except UnsupportedError as error:
        refusal = str(error)
    assert "isn't the training" not in refusal, step
    assert refusal or not is_another_training(step, found), step


@pytest.mark.parametrize(
    "step",
    [
        Drawn(("softmax", "batch norm"), optimizer=3, loop=2, data=0, is_tied=True, seed=438),
        Drawn(("gelu", "index add", "triangle", "std"), optimizer=3, loop=0, data=2, is_tied=True, seed=700),
    ],
)
def test_programs_that_once_were_silent_differences(step: Drawn) -> None:
    """What is zero but for rounding, and the jump of a deviation's gradient where all terms are equal."""
    assert not is_another_training(step, step.captured())


def test_the_judge_of_drawn_programs_sees_a_wrong_rule(rules: Callable[[str, Any], None]) -> None:
    """A test that can fail: without the self-check a wrong rule is a silent difference."""
    rules("aten.silu.default", RULES["aten.relu.default"].lower)
    step = Drawn(("linear", "silu"), 0, 0, 0, is_tied=False, seed=0)
    assert is_another_training(step, step.captured(check=False))
    with pytest.raises(UnsupportedError, match="silu"):
        step.captured()


def test_a_long_sum_counts_all_of_its_terms() -> None:
    """Also where an operation has several, in lanes and in pieces: a GPT-2 was refused for a bound of 64 of 1,024."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 64), nn.LayerNorm(64), nn.Linear(64, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = (torch.randn(4096, 6), torch.randint(0, 3, (4096,)))
    found = capture(model, functional.cross_entropy, optimizer, data, torch.arange(4096).reshape(2, 2048), check=False)
    names, operations = [node.name for node in found.names.nodes], {node.name for node in found.aten.nodes}
    terms = fold_lengths(found.program, names, operations)
    assert [terms[f"{name}.grad"] for name in ("0.weight", "0.bias", "1.weight", "2.weight", "2.bias")] == [2048] * 5
    assert terms["forward.native_layer_norm_1"] == 64
    assert set(terms) <= operations | {""}
    graph, _ = graph_of("sum.default", (torch.zeros(100_000),))
    long, parts = lower(graph)
    counted = fold_lengths(long, [node.name for node in parts.nodes], {node.name for node in graph.nodes})
    assert 100_000 <= max(counted.values()) < 101_000
