"""Data sets as people have them: integers of 8 and 16 bits, dictionaries, no target; augmentation inside of steps."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, AdamW
from transformers import BatchEncoding, BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

import chosen_rows
from graph.test_lowering_operations import outputs_of
from pol.errors import UnsupportedError
from pol.execution.reference import ReferenceExecutor, next_state
from pol.graph.capture import Capture, capture
from pol.training.exact.exact_loop import exact
from pol.training.task.task_randomness import TaskRandomness

ROWS = 12
ORDER = torch.randint(0, ROWS, (4, 4), generator=torch.manual_seed(7))
LABELS = torch.arange(ROWS) % 3
PIXELS = torch.randint(0, 256, (ROWS, 1, 6, 6), generator=torch.manual_seed(8), dtype=torch.uint8)


def next_words(result: Capture, step: int = 0) -> dict[str, Any]:
    """The state after one step, the same bits in both executors."""
    outputs = outputs_of(result.program, result.state, result.constants, step)
    return dict(zip(result.names.slots, next_state(result.program, outputs), strict=True))


class Images(nn.Module):
    """Takes pixels as they are."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(9)
        self.conv, self.head = nn.Conv2d(1, 4, 3), nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = (255 - x).float() / 255
        return self.head(torch.relu(self.conv(x)).flatten(1))  # type: ignore[no-any-return]  # torch: Any


def test_pixels_are_a_data_set() -> None:
    model = Images()
    optimizer = SGD(model.parameters(), 0.1)
    result = capture(model, functional.cross_entropy, optimizer, (PIXELS, LABELS), ORDER)
    after = next_words(result)
    functional.cross_entropy(model(PIXELS[ORDER[0]]), LABELS[ORDER[0]]).backward()  # type: ignore[no-untyped-call]  # torch declares no types
    optimizer.step()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(after[name].view(np.float32), parameter.detach().numpy(), rtol=1e-4, atol=1e-6)


class Whole(nn.Module):
    """A function of whole numbers before a linear layer."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.function, self.linear = function, nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.function(x).float() / 100)  # type: ignore[no-any-return]  # torch: Any


NARROW = {
    "sum wraps": lambda x: x + x,
    "product wraps": lambda x: x * 3,
    "difference wraps": lambda x: x - 100,
    "negative": lambda x: -x,
    "absolute": lambda x: x if x.dtype is torch.uint8 else x.abs(),  # torch has none of bytes without a sign
    "all bits": lambda x: ~x,
    "some bits": lambda x: (x ^ 3) | (x & 12),
    "to each other": lambda x: x.to(torch.int8).to(torch.int16).to(torch.uint8),
    "from int64": lambda x: (x.long() * 1000).to(torch.int16),
    "from floats": lambda x: (x.float() * 1.7).clamp(-100, 100).to(torch.int8),
    "greatest": lambda x: torch.maximum(x, x.flip(1)).clamp(max=50),
    "places": lambda x: x[:, [4, 1, 1, 0, 2]],
    "sorted out": lambda x: torch.where(x > 20, x, torch.zeros_like(x)),
    "added up": lambda x: x.sum(1, keepdim=True) + torch.cat([x, x], 1)[:, :5],
    "mean": lambda x: x.float().mean(1, keepdim=True) + x / 7,
    "remainder": lambda x: x % 7 + x // 5,
    "kept as bool": lambda x: x.bool(),
}


@pytest.mark.parametrize("names", chosen_rows.together(NARROW, 6, alone=pytest.mark.slow))
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_narrow_integers_wrap_as_in_torch(names: list[str], dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    numbers = torch.randint(limits.min, limits.max + 1, (ROWS, 5), generator=torch.manual_seed(1)).to(dtype)
    model = Whole(lambda x: sum(NARROW[name](x).float() for name in names))
    result = capture(model, functional.cross_entropy, SGD(model.parameters(), 0.1), (numbers, LABELS), ORDER)
    slow = ReferenceExecutor(result.program, result.constants).run(result.state, 0)
    loss = functional.cross_entropy(model(numbers[ORDER[0]]), LABELS[ORDER[0]])
    assert float(slow[result.names.observed["loss"]].view(np.float32)) == pytest.approx(float(loss.detach()), rel=1e-5)
    next_words(result)


def test_floats_beyond_the_range_of_narrow_integers_are_refused() -> None:
    model = Whole(lambda x: (x * 1e6).to(torch.uint8))
    data = (torch.randn(ROWS, 5), LABELS)
    with pytest.raises(UnsupportedError, match=r"floats become uint8.*x\.clamp\(0, 255\)\.to\(torch\.uint8\)"):
        capture(model, functional.cross_entropy, SGD(model.parameters(), 0.1), data, ORDER)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.randn(ROWS, 5).double(), r"data\.0 of the data set is float64.*\.float\(\)"),
        (torch.randn(ROWS, 5).half(), r"data\.0 of the data set is float16.*\.float\(\)"),
        (torch.randn(ROWS, 5, dtype=torch.complex64), r"data\.0 of the data set is complex64.*real numbers"),
        (torch.randn(2, 5), r"data\.1 .*shape \(12,\), others have 2 rows.*register_buffer.*padded"),
    ],
)
def test_data_without_words_are_refused_with_the_way_out(tensor: Tensor, message: str) -> None:
    model = nn.Linear(5, 3)
    with pytest.raises(UnsupportedError, match=message):
        capture(model, functional.cross_entropy, SGD(model.parameters(), 0.1), (tensor, LABELS), ORDER)


def test_bfloat16_and_bool_data() -> None:
    model = Whole(lambda x: x)
    for data in (torch.randn(ROWS, 5).bfloat16(), torch.randn(ROWS, 5) > 0):
        next_words(capture(model, functional.cross_entropy, SGD(model.parameters(), 0.1), (data, LABELS), ORDER))


FLOATS = torch.randn(ROWS, 6, generator=torch.manual_seed(4))


def test_an_autoencoder_has_its_inputs_as_target() -> None:
    model = nn.Sequential(nn.Linear(6, 2), nn.Tanh(), nn.Linear(2, 6))
    optimizer = SGD(model.parameters(), 0.1)
    alone = capture(model, functional.mse_loss, optimizer, (FLOATS,), ORDER)
    twice = capture(model, functional.mse_loss, optimizer, (FLOATS, FLOATS), ORDER)
    outputs = [
        ReferenceExecutor(c.program, c.constants).run(c.state, 0)[c.names.observed["loss"]] for c in (alone, twice)
    ]
    assert np.array_equal(*outputs)


class Variational(nn.Module):
    """Gives all that its loss needs."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(6, 4), nn.Linear(2, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        mean, spread = self.encode(x).chunk(2, 1)
        drawn = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.decode(drawn), x, mean, spread


def evidence(output: tuple[Tensor, ...]) -> Tensor:
    recovered, x, mean, spread = output
    divergence = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(1).mean()
    return functional.mse_loss(recovered, x) + divergence


def test_a_loss_of_the_output_alone() -> None:
    model = Variational()
    result = capture(model, evidence, AdamW(model.parameters(), 1e-2), (FLOATS,), ORDER, seed=2)
    next_words(result)


def tiny_bert() -> BertForSequenceClassification:
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=17, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, num_labels=3,
        max_position_embeddings=8,
    )  # fmt: skip
    return BertForSequenceClassification(config)


def encoded() -> dict[str, Tensor]:
    tokens = torch.randint(1, 17, (ROWS, 6), generator=torch.manual_seed(6))
    mask = (torch.arange(6) < torch.randint(2, 7, (ROWS, 1), generator=torch.manual_seed(7))).long()
    return {"input_ids": tokens * mask, "attention_mask": mask, "labels": LABELS}


@pytest.mark.parametrize("kind", [dict, BatchEncoding])
def test_hugging_face_batches_and_models_without_a_wrapper(kind: Any) -> None:
    model = tiny_bert()
    optimizer = AdamW(model.parameters(), 1e-2, foreach=False)
    data = encoded()
    result = capture(model, None, optimizer, kind(data), ORDER, seed=3)
    assert {"data.input_ids", "data.attention_mask", "data.labels"} <= set(result.names.constants)
    after = next_words(result)
    with TaskRandomness(3).step(0):
        model(**{name: tensor[ORDER[0]] for name, tensor in data.items()}).loss.backward()
    optimizer.step()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(after[name].view(np.float32), parameter.detach().numpy(), rtol=1e-2, atol=2e-4)


def test_a_dictionary_with_a_loss_has_its_target_last() -> None:
    model = tiny_bert().eval()

    def loss(output: Any, labels: Tensor) -> Tensor:
        return functional.cross_entropy(output.logits, labels)

    optimizer = SGD(model.parameters(), 0.1)
    own, given = (capture(model, which, optimizer, encoded(), ORDER) for which in (None, loss))
    values = [ReferenceExecutor(c.program, c.constants).run(c.state, 0)[c.names.observed["loss"]] for c in (own, given)]
    assert np.array_equal(*values)


def test_a_language_model_gives_its_loss_in_exact_steps() -> None:
    torch.manual_seed(5)
    config = GPT2Config(vocab_size=11, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    model = GPT2LMHeadModel(config)
    tokens = torch.randint(0, 11, (ROWS, 6), generator=torch.manual_seed(6))
    step = exact(model, None, AdamW(model.parameters(), 1e-2), steps=3)
    losses = [float(step(input_ids=tokens[rows], labels=tokens[rows])) for rows in ORDER[:2]]
    assert all(map(np.isfinite, losses))
    with pytest.raises(UnsupportedError, match=r"needs a loss function.*step\(\*\*batch\)"), step.own_loop():
        pass


def test_tokens_shifted_to_the_right_stay_in_32_bits() -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.table, self.head = nn.Embedding(17, 4), nn.Linear(4, 17)

        def forward(self, labels: Tensor) -> Tensor:
            given = labels.new_zeros(labels.shape)
            given[..., 1:] = labels[..., :-1].clone()
            given[..., 0] = 1
            logits = self.head(self.table(given))
            return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    model = Shifted()
    data = {"labels": encoded()["input_ids"]}
    next_words(capture(model, None, SGD(model.parameters(), 0.1), data, ORDER))


def test_a_model_without_a_loss_for_its_batch_is_refused() -> None:
    model = tiny_bert()
    data = {name: tensor for name, tensor in encoded().items() if name != "labels"}
    with pytest.raises(UnsupportedError, match=r"the model gives no loss for this batch.*labels"):
        capture(model, None, SGD(model.parameters(), 0.1), data, ORDER)


def test_a_model_that_returns_its_loss_in_other_forms() -> None:
    class Own(nn.Module):
        def __init__(self, form: Any) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.linear, self.form = nn.Linear(6, 3), form

        def forward(self, x: Tensor, labels: Tensor) -> Any:
            return self.form(functional.cross_entropy(self.linear(x), labels))

    forms = (lambda v: v, lambda v: (v, 1), lambda v: {"loss": v}, lambda v: SimpleNamespace(loss=v))
    programs = []
    for form in forms:
        model = Own(form)
        programs.append(capture(model, None, SGD(model.parameters(), 0.1), (FLOATS, LABELS), ORDER).program)
    assert all(program == programs[0] for program in programs)


class Augmented(nn.Module):
    """A random crop, a flip and changed colors, as tensors, before a convolution."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.conv, self.head = nn.Conv2d(1, 3, 3), nn.Linear(12, 3)

    def augment(self, x: Tensor) -> Tensor:
        count, size = len(x), 4
        top, left = torch.randint(0, 3, (2, count, 1))
        rows, columns = top + torch.arange(size), left + torch.arange(size)
        x = x[torch.arange(count)[:, None, None], 0, rows[:, :, None], columns[:, None, :]][:, None]
        x = torch.where(torch.rand(count, 1, 1, 1) < 0.5, x.flip(3), x)
        brightness, contrast = 0.8 + 0.4 * torch.rand(2, count, 1, 1, 1)
        mean = x.mean((1, 2, 3), keepdim=True)
        return ((x - mean) * contrast + mean) * brightness

    def forward(self, x: Tensor) -> Tensor:
        x = x.float() / 255
        x = self.augment(x) if self.training else x[:, :, 1:5, 1:5]
        return self.head(torch.relu(self.conv(x)).flatten(1))  # type: ignore[no-any-return]  # torch: Any


def test_augmentation_draws_the_numbers_of_the_task() -> None:
    model = Augmented()
    result = capture(model, functional.cross_entropy, SGD(model.parameters(), 0.1), (PIXELS, LABELS), ORDER, seed=4)
    next_words(result, 2)
    outputs = ReferenceExecutor(result.program, result.constants).run(result.state, 2)
    with TaskRandomness(4).step(2):
        loss = functional.cross_entropy(model(PIXELS[ORDER[2]]), LABELS[ORDER[2]])
    found = float(outputs[result.names.observed["loss"]].view(np.float32))
    assert found == pytest.approx(float(loss.detach()), rel=1e-5)


class Graph(nn.Module):
    """One graph for all steps: nodes and edges are buffers, a batch names nodes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.linear = nn.Linear(6, 3)
        self.register_buffer("nodes", FLOATS)
        self.register_buffer("edges", torch.randint(0, ROWS, (2, 30), generator=torch.manual_seed(3)))

    def forward(self, chosen: Tensor) -> Tensor:
        source, target = self.edges
        hidden = torch.zeros(ROWS, 3).index_add(0, target, self.linear(self.nodes)[source])
        return hidden[chosen]


def test_nodes_of_one_graph_are_batches() -> None:
    model = Graph()
    data = (torch.arange(ROWS), LABELS)
    next_words(capture(model, functional.cross_entropy, SGD(model.parameters(), 0.1), data, ORDER))
