"""What a capture cannot hold is refused in words that help, and nothing of the user's changes."""

import collections
import copy
import functools
import itertools
import random
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.ao.quantization import FakeQuantize, PerChannelMinMaxObserver
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR, StepLR

from pol.errors import UnsupportedError
from pol.graph.capture import Capture, capture

ROWS, CLASSES = 20, 5
torch.manual_seed(5)
INPUTS, LABELS = torch.randn(ROWS, 6), torch.arange(ROWS) % CLASSES
ORDER = torch.arange(ROWS).reshape(4, 5)
TEACHER = nn.Linear(CLASSES, CLASSES)
Change = Callable[["Model", Tensor], Tensor]


class Model(nn.Module):
    """A linear layer, and state of every kind where no optimizer sees it; `change` is the rest of forward."""

    def __init__(self, change: Change = lambda self, output: output) -> None:
        super().__init__()
        self.fc = nn.Linear(6, CLASSES)
        self.change = change
        self.ema = torch.tensor(0.5)
        self.t = 0
        self.flag = False
        self.history: list[Any] = [1]
        self.weights = [self.fc.weight]
        self.counts = {"a": [0]}
        self.seen = {1}
        self.recent = collections.deque([1], maxlen=3)
        self.array = np.ones(2)
        self.settings = types.SimpleNamespace(rate=1.0)
        self.numbers = itertools.count()
        self.generator = np.random.default_rng(1)

    def forward(self, x: Tensor) -> Tensor:
        return self.change(self, self.fc(x))


def ema(model: Model, output: Tensor) -> Tensor:
    model.ema = 0.9 * model.ema + 0.1 * output.mean()
    return output * model.ema.detach()


def ema_in_place(model: Model, output: Tensor) -> Tensor:
    model.ema.mul_(0.9)
    return output * model.ema


def through_a_view(model: Model, output: Tensor) -> Tensor:
    model.ema.view(1)[0].add_(1)
    return output * model.ema


def count(model: Model, output: Tensor) -> Tensor:
    model.t += 1
    return output / model.t


def once(model: Model, output: Tensor) -> Tensor:
    if model.flag:
        return output
    model.flag = True
    return output * 2


def cache(model: Model, output: Tensor) -> Tensor:
    if not hasattr(model, "mask"):
        model.register_buffer("mask", torch.ones_like(output).tril())
    return output * model.mask


def append(model: Model, output: Tensor) -> Tensor:
    model.history.append(1)
    return output


def nested(model: Model, output: Tensor) -> Tensor:
    model.counts["a"][0] += 1
    return output


def collect(model: Model, output: Tensor) -> Tensor:
    model.seen.add(len(model.seen) + 1)
    return output


def rotate(model: Model, output: Tensor) -> Tensor:
    model.recent.append(model.recent[-1] + 1)
    return output


def array(model: Model, output: Tensor) -> Tensor:
    model.array += 1
    return output * float(model.array[0])


def decay(model: Model, output: Tensor) -> Tensor:
    model.settings.rate *= 0.9
    return output * model.settings.rate


def grow(model: Model, output: Tensor) -> Tensor:
    model.extra = nn.Parameter(torch.zeros(1))
    return output


def past(model: Model, output: Tensor) -> Tensor:
    return output * model.weights[0].sum()


def replace(model: Model, output: Tensor) -> Tensor:
    model.fc.weight = nn.Parameter(model.fc.weight * 2)
    return output


STATE: list[tuple[Change, str]] = [
    (ema, r"reads attribute model\.ema, which the run before has made.*register_buffer"),
    (ema_in_place, r"model\.ema\.mul_\(0\.9\).*aten\.mul_.*model\.ema.*register_buffer"),
    (through_a_view, r"writes into model\.ema.*register_buffer"),
    (count, r"attribute model\.t changes.*register_buffer"),
    (once, "differs from run to run"),
    (cache, r"reads attribute model\.mask, which the run before has made.*run the model once on a batch"),
    (append, r"attribute model\.history\[\d\] changes"),
    (nested, r"attribute model\.counts\['a'\]\[0\] changes"),
    (collect, r"attribute model\.seen\[\d\] changes"),
    (rotate, r"attribute model\.recent\[\d\] changes"),
    (array, r"attribute model\.array changes"),
    (decay, r"attribute model\.settings\.rate changes"),
    (grow, r"attribute model\.extra changes"),
    (lambda model, output: output * next(model.numbers), r"attribute model\.numbers changes"),
    (lambda model, output: output * model.generator.random(), r"attribute model\.generator changes"),
    (past, r"model\.weights\[0\]\.sum\(\) -- .*fc\.weight is used past its module"),
    (replace, r"replaces one of its parameters|attribute model\.fc\.weight changes"),
    (lambda model, output: output * random.random(), "draws random numbers from Python's random"),
    (lambda model, output: output * float(np.random.rand()), r"draws random numbers from numpy\.random"),
    (lambda model, output: output * torch.poisson(output.abs()), r"aten\.poisson.*random"),
    (lambda model, output: output * torch.manual_seed(3).initial_seed(), "sets the seed of torch"),
    (lambda model, output: output.numpy(force=True), r"output\.numpy.*depends on the values of tensors"),
    (lambda model, output: output * np.asarray(output.detach()).max(), r"asarray.*depends on the values of tensors"),
    (lambda model, output: output * output.tolist()[0][0], r"tolist.*depends on the values of tensors"),
    (lambda model, output: output * float(output.sum()), r"float.*depends on the values of tensors"),
    (lambda model, output: output + model.nothing, r"model\.nothing.*AttributeError.*run your own loop"),
    (lambda model, output: output @ torch.ones(6, 6), r"torch\.ones\(6, 6\).*-- the step fails with RuntimeError"),
    (lambda model, output: output.double().log_softmax(1).float(), r"double\(\).*float64.*\.float\(\)"),
    (lambda model, output: torch.special.i0(output), r"i0\(output\).*i0.*docs/operations\.md"),
]


def reachable(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
    """Everything that a capture must leave alone, in a form that compares."""
    plain = {
        key: copy.deepcopy(value)
        for key, value in vars(model).items()
        if key not in {"_parameters", "_buffers", "_modules", "numbers", "generator", "weights"}
    }
    numbers = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    names = [*map(id, model.parameters()), *(id(p) for group in optimizer.param_groups for p in group["params"])]
    generators = (random.getstate(), repr(np.random.get_state()), torch.get_rng_state().tolist())
    gradients = [parameter.grad for parameter in model.parameters()]
    return repr((plain, numbers, copy.deepcopy(groups), names, len(optimizer.state), generators, gradients))


def attempt(model: nn.Module, **changes: Any) -> Capture:
    """A capture of the model that must leave everything as it is, and stay quiet."""
    optimizer = changes.pop("optimizer", None) or torch.optim.SGD(model.parameters(), lr=0.1)
    arguments = {"loss": functional.cross_entropy, "dataset": (INPUTS, LABELS), "order": ORDER, **changes}
    before = reachable(model, optimizer)
    try:
        return capture(model, optimizer=optimizer, **arguments)
    finally:
        assert reachable(model, optimizer) == before


@pytest.mark.parametrize(("change", "message"), STATE)
def test_what_a_model_does_past_its_tensors_is_refused_and_undone(
    change: Change, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        attempt(Model(change))
    assert capfd.readouterr() == ("", "")


def test_the_same_model_without_the_change_is_captured() -> None:
    assert attempt(Model()).program.to_bytes() == attempt(Model()).program.to_bytes()


def test_another_model_is_a_constant() -> None:
    result = attempt(Model(lambda _, output: output + TEACHER(output)))
    assert set(result.names.constants) == {"data.0", "data.1", "order", "constant.0", "constant.1"}


@pytest.mark.parametrize(
    "advised",
    [
        lambda m, x: (x - x.mean(-1, True)) * torch.rsqrt(((x - x.mean(-1, True)) ** 2).mean(-1, True) + 1e-5),
        lambda m, x: x / (x * x).sum(1, True).sqrt(),
        lambda m, x: torch.softmax(x @ x.transpose(-2, -1) * 0.3, -1) @ x,
        lambda m, x: functional.softplus(x) - x * LABELS[:5],
        lambda m, x: x + x.view(5, 5, 1).amax(-1),
        lambda m, x: torch.utils.checkpoint.checkpoint(torch.tanh, x, use_reentrant=False),
    ],
)
def test_what_refusals_advise_can_be_captured(advised: Change) -> None:
    attempt(Model(advised))


def test_options_that_change_no_number_change_no_byte() -> None:
    model = Model()
    plain = attempt(model).program.to_bytes()
    for option in ("foreach", "fused"):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **{option: True})
        assert attempt(model, optimizer=optimizer).program.to_bytes() == plain


def test_a_model_works_as_before_after_a_refusal() -> None:
    model, twin = Model(ema), Model(ema)
    twin.load_state_dict(model.state_dict())
    with pytest.raises(UnsupportedError):
        attempt(model)
    assert torch.equal(model(INPUTS), twin(INPUTS))
    assert type(model.ema) is Tensor
    assert torch.equal(model.ema, twin.ema)


def counting() -> Callable[[Tensor, Tensor], Tensor]:
    steps = 0

    def loss(output: Tensor, target: Tensor) -> Tensor:
        nonlocal steps
        steps += 1
        return functional.cross_entropy(output, target)

    return loss


class Trainer:
    def __init__(self) -> None:
        self.steps = 0

    def loss(self, output: Tensor, target: Tensor, scale: float = 1.0) -> Tensor:
        self.steps += 1
        return functional.cross_entropy(output, target) * scale


def test_state_of_the_loss_is_refused_and_undone() -> None:
    trainer = Trainer()
    losses: dict[str, Any] = {
        "loss: steps": counting(),
        r"loss\.steps": trainer.loss,
        r"loss\.steps changes": functools.partial(trainer.loss, scale=2.0),
    }
    for name, loss in losses.items():
        with pytest.raises(UnsupportedError, match=name):
            attempt(Model(), loss=loss)
    assert trainer.steps == 0
    assert losses["loss: steps"].__closure__[0].cell_contents == 0


def test_a_log_line_in_the_loss_is_no_obstacle(capsys: pytest.CaptureFixture[str]) -> None:
    def loss(output: Tensor, target: Tensor) -> Tensor:
        value = functional.cross_entropy(output, target)
        print(value.item())
        return value

    attempt(Model(), loss=loss)
    assert capsys.readouterr().out


def test_capture_works_where_gradients_are_off() -> None:
    with torch.no_grad():
        quiet = attempt(Model())
    assert quiet.program.to_bytes() == attempt(Model()).program.to_bytes()


@pytest.mark.parametrize("schedule", [lambda o: StepLR(o, 1), lambda o: OneCycleLR(o, 0.1, total_steps=10)])
def test_a_learning_rate_scheduler_is_refused(schedule: Callable[[torch.optim.Optimizer], Any]) -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = schedule(optimizer)
    with pytest.raises(UnsupportedError, match=r"learning-rate scheduler.*Loop\(scheduler="):
        capture(model, functional.cross_entropy, optimizer, (INPUTS, LABELS), ORDER)
    assert scheduler is not None


def test_a_rate_that_an_optimizer_keeps_is_no_scheduler() -> None:
    model = Model()
    optimizer = torch.optim.SGD([{"params": model.parameters(), "initial_lr": 0.1}], lr=0.1)
    assert capture(model, functional.cross_entropy, optimizer, (INPUTS, LABELS), ORDER, check=False).program


@pytest.mark.parametrize(
    ("attach", "message"),
    [
        (lambda model, optimizer: optimizer.register_step_pre_hook(lambda *_: None), "step hooks"),
        (lambda model, optimizer: optimizer.register_step_post_hook(lambda *_: None), "step hooks"),
        (lambda m, _: m.fc.weight.register_hook(lambda gradient: gradient * 2), r"fc\.weight has a gradient hook"),
        (lambda m, _: m.fc.bias.register_post_accumulate_grad_hook(lambda p: None), r"fc\.bias has a gradient hook"),
        (lambda m, _: m.fc.weight.data.fill_(float("nan")), r"parameter fc\.weight holds NaN or infinity"),
        (
            lambda m, _: m.register_buffer("mask", torch.tensor(float("nan"))),
            "mask holds NaN or infinity: no training can begin",
        ),
        (lambda m, _: m.register_module("lazy", nn.LazyLinear(2)), r"parameter lazy\.weight has no shape yet"),
        (lambda m, _: m.register_module("h", nn.Linear(2, 2).half()), r"h\.weight is torch\.float16"),
        (lambda m, _: m.register_module("far", nn.Linear(2, 2, device="meta")), r"far\.weight is .*on meta"),
        (
            lambda m, _: m.register_module("d", nn.Linear(2, 2).double()),
            r"d\.weight is torch\.float64.*model\.float\(\)",
        ),
        (lambda m, _: m.register_buffer("d", torch.ones(2).double()), r"buffer d is float64.*model\.float\(\)"),
    ],
)
def test_what_a_trace_never_meets_is_refused_before(attach: Callable[[Any, Any], Any], message: str) -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    attach(model, optimizer)
    with pytest.raises(UnsupportedError, match=message):
        capture(model, functional.cross_entropy, optimizer, (INPUTS, LABELS), ORDER)


def odd_arguments() -> Iterator[tuple[str, dict[str, Any]]]:
    infinite = INPUTS.clone()
    infinite[3, 2] = float("inf")
    net: nn.Module = Model()
    yield r"not a tuple of list; use torch\.tensor", {"dataset": (INPUTS.tolist(), LABELS.tolist())}
    yield r"not a TensorDataset.*\.tensors", {"dataset": torch.utils.data.TensorDataset(INPUTS, LABELS)}
    yield "not a Tensor", {"dataset": INPUTS}
    yield "not a DataLoader", {"dataset": torch.utils.data.DataLoader([1])}
    yield r"data\.0 of the data set holds NaN or infinity", {"dataset": (infinite, LABELS)}
    yield "the order of the data", {"order": [[0, 1]]}
    yield "the loss is a str", {"loss": "cross_entropy"}
    yield "TypeError: .*positional arguments but 3", {"loss": lambda output: output.sum()}
    yield r"LBFGS has no definition", {"model": net, "optimizer": torch.optim.LBFGS(net.parameters())}
    yield "optimizer is a int", {"optimizer": [1]}
    yield "model is a function, not a torch.nn.Module", {"model": lambda x: x}
    yield r"model\.1: Linear -- .*\[5, 8\] X \[9, 5\]", {"model": nn.Sequential(nn.Linear(6, 8), nn.Linear(9, 5))}


def test_odd_arguments_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    for message, changes in odd_arguments():
        model = changes.get("model", Model())
        parameters = model.parameters() if isinstance(model, nn.Module) else [nn.Parameter(torch.ones(1))]
        arguments: dict[str, Any] = {
            "model": model,
            "loss": functional.cross_entropy,
            "optimizer": torch.optim.SGD(parameters, lr=0.1),
            "dataset": (INPUTS, LABELS),
            "order": ORDER,
            **changes,
        }
        with pytest.raises(UnsupportedError, match=message):
            capture(**arguments)
    assert capfd.readouterr() == ("", "")


def test_precision_around_the_capture_and_half_precision_are_refused() -> None:
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(UnsupportedError, match=r"leave torch\.autocast"):
        attempt(Model())

    def inside(model: Model, output: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.float16):
            return (output @ model.fc.weight[:, :5].t()).float()

    with pytest.raises(UnsupportedError, match=r"float16.*autocast in bfloat16"):
        attempt(Model(inside))
    with torch.inference_mode(), pytest.raises(UnsupportedError, match="inference_mode"):
        attempt(Model())


def test_labels_are_checked_against_the_classes() -> None:
    def labelled(output: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(output, target.long())

    for wrong in (CLASSES, -1):
        labels = LABELS.clone()
        labels[7] = wrong
        with pytest.raises(UnsupportedError, match=rf"data\.1 holds {wrong}, but there are 5 classes: 0 \.\. 4"):
            attempt(Model(), dataset=(INPUTS, labels))
        with pytest.raises(UnsupportedError, match=rf"data\.1 holds {wrong}, but there are 5 classes"):
            attempt(Model(), dataset=(INPUTS, labels + 0.0), loss=labelled)
        attempt(Model(), dataset=(INPUTS, labels), order=ORDER[2:])
        ignoring = nn.CrossEntropyLoss(ignore_index=wrong)
        attempt(Model(), dataset=(INPUTS, labels), loss=ignoring)


def test_tokens_are_checked_against_the_table() -> None:
    def model() -> nn.Module:
        return nn.Sequential(nn.Embedding(CLASSES - 1, 3), nn.Flatten(), nn.Linear(6, CLASSES))

    tokens = torch.stack([LABELS, LABELS], 1)
    with pytest.raises(UnsupportedError, match=r"model\.0: Embedding -- data\.0 holds 4, but there are 4 rows"):
        attempt(model(), dataset=(tokens, LABELS))
    attempt(model(), dataset=(tokens.clamp(max=3), LABELS))

    def picked(output: Tensor, target: Tensor) -> Tensor:
        return -output.log_softmax(1).gather(1, target[:, None]).mean()

    attempt(Model(), loss=picked)
    with pytest.raises(UnsupportedError, match=r"gather.*data\.1 holds 5"):
        attempt(Model(), loss=picked, dataset=(INPUTS, LABELS + 1))


PLACES: dict[str, tuple[int, Callable[[Tensor, Tensor], Tensor]]] = {
    "take": (25, lambda out, at: out.take(at).sum()),
    "put": (25, lambda out, at: out.put(at, out[:, 0]).sum()),
    "max_unpool1d": (5, lambda out, at: functional.max_unpool1d(out[:, None, :1], at[:, None, None], 5).sum()),
    "max_unpool3d": (
        5,
        lambda out, at: functional.max_unpool3d(
            out[:, :1, None, None, None], at[:, None, None, None, None], (5, 1, 1)
        ).sum(),
    ),
    "ctc_loss": (
        5,
        lambda out, at: functional.ctc_loss(
            out.log_softmax(1)[:, None], at[None, :1], torch.full((1,), 5), torch.full((1,), 1)
        ),
    ),
    "ctc_loss by lists": (5, lambda out, at: functional.ctc_loss(out.log_softmax(1)[:, None], at[None, :1], [5], [1])),
}
"""How many places there are, and an operation that a program has in other words, of which torch would look some up."""


@pytest.mark.parametrize("name", PLACES)
def test_torch_never_looks_up_a_place_that_does_not_exist(name: str) -> None:
    size, loss = PLACES[name]
    for wrong in (size, -size - 1, 2**31 - 1):
        with pytest.raises(UnsupportedError, match=rf"(holds|reads label) {wrong}, but there are .*Renumber it"):
            attempt(Model(), dataset=(INPUTS, torch.where(LABELS == 0, wrong, 1)), loss=loss)


def filled(model: Model, output: Tensor) -> Tensor:
    """A cache that the first forward makes, as `src_mask` and the cosines of rotary embeddings."""
    model.ema = torch.arange(5.0) if model.ema.dim() == 0 else model.ema
    return output * model.ema


def test_a_cache_is_captured_once_a_first_forward_has_filled_it() -> None:
    model = Model(filled)
    with pytest.raises(UnsupportedError, match=r"ema.*run the model once on a batch before you capture it"):
        attempt(model)
    model(INPUTS[:5])
    assert attempt(model, check=False).program


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: nn.Sequential(nn.Linear(6, CLASSES), FakeQuantize(PerChannelMinMaxObserver)),
            r"buffer 1\.activation_post_process\.min_val is empty.*run the model once",
        ),
        (
            lambda: nn.Sequential(nn.Linear(6, CLASSES), nn.BatchNorm1d(CLASSES, momentum=None)),
            r"model\.1: BatchNorm1d has momentum=None.*give it a momentum",
        ),
    ],
)
def test_layers_that_cannot_be_followed_are_named(make: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        attempt(make())


@pytest.mark.parametrize(
    ("option", "advice"),
    [({"max_norm": 1.0}, ".*embedding_renorm.*leave out max_norm"), ({"sparse": True}, ".*leave sparse=True out")],
)
def test_an_embedding_is_refused_with_advice_of_its_own(option: dict[str, Any], advice: str) -> None:
    table = nn.Embedding(11, CLASSES, **option)
    with pytest.raises(UnsupportedError, match=f"model: Embedding -- {advice}"):
        attempt(table, dataset=(torch.arange(ROWS) % 11, LABELS), loss=functional.cross_entropy)


class Centred(nn.Module):
    """A loss with a buffer of its own."""

    center: Tensor

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(CLASSES))
        self.in_place = in_place

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        if self.in_place:
            self.center.mul_(0.9).add_(output.detach().mean(0))
        else:
            self.center = self.center * 0.9 + output.detach().mean(0)
        return functional.cross_entropy(output - self.center, target)


@pytest.mark.parametrize("in_place", [True, False])
def test_a_buffer_of_the_loss_belongs_into_the_model(in_place: bool) -> None:
    with pytest.raises(UnsupportedError, match=r"loss\.center.*move it into the model"):
        attempt(nn.Linear(6, CLASSES), loss=Centred(in_place))


def test_an_error_of_the_own_step_names_the_users_line() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, CLASSES).bfloat16()

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x).float()  # here

    with pytest.raises(UnsupportedError, match=r"test_capture_refusals\.py:\d+: .*# here -- .*same dtype"):
        attempt(Mixed())


def test_a_sparse_matrix_is_refused_with_a_way_out() -> None:
    edges = torch.sparse_coo_tensor(
        torch.tensor([[0, 1], [1, 0]]), torch.ones(2), (CLASSES, CLASSES), check_invariants=True
    )
    model = Model(lambda _, output: torch.sparse.mm(edges, output.t()).t())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(UnsupportedError, match=r"edges is torch.sparse_coo.*index_add.*to_dense"):
        capture(model, functional.cross_entropy, optimizer, (INPUTS, LABELS), ORDER)
