"""Models as people write them, captured unmodified: the numbers of torch, the same bits in both executors.

Vision models are captured as they are: one step gives torch's next state, and the kernels the reference's bits.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from own_loop import CLASSES, ROWS, Setup, labels, require_own_loop
from torch import Tensor, nn
from torch.nn import functional
from vision import CNN, Autoencoder, UNet, Waves

import chosen_rows
from graph.test_lowering_operations import outputs_of
from lab.benchmarks.measured_models import GPT, GPTSize, Llama, LlamaSize, ResNet18, next_token_loss
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import next_state
from pol.graph.capture import capture

LENGTH, WORDS = 10, 17


def tokens(*shape: int) -> Tensor:
    return torch.randint(0, WORDS, shape)


def texts() -> list[Tensor]:
    text = tokens(ROWS, LENGTH + 1)
    return [text[:, :-1].contiguous(), text[:, 1:].contiguous()]


def gpt() -> Setup:
    return GPT(GPTSize(WORDS, LENGTH, layers=2, heads=2, width=8)), next_token_loss, texts()


def llama() -> Setup:
    return Llama(LlamaSize(WORDS, layers=2, heads=4, key_heads=2, width=16, hidden=24)), next_token_loss, texts()


class Adapted(nn.Module):
    """A frozen linear layer and a trained update of low rank."""

    def __init__(self, base: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 0.5 * self.up(self.down(x))


def lora() -> Setup:
    model = GPT(GPTSize(WORDS, LENGTH, layers=2, heads=2, width=8)).requires_grad_(False)
    for block in model.blocks:
        block.attention.joint = Adapted(block.attention.joint)
    return model, next_token_loss, texts()


def logits_loss(output: Any, target: Tensor) -> Tensor:
    return next_token_loss(output.logits, target)


def hugging_face_gpt2() -> Setup:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=8, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config), logits_loss, texts()


def hugging_face_llama() -> Setup:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=WORDS, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=LENGTH, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config), logits_loss, texts()


class Bert(nn.Module):
    """Two inputs: tokens and which of them are there."""

    def __init__(self) -> None:
        from transformers import BertConfig, BertForSequenceClassification

        super().__init__()
        config = BertConfig(
            vocab_size=WORDS, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=LENGTH, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            num_labels=CLASSES,
        )  # fmt: skip
        self.inner = BertForSequenceClassification(config)

    def forward(self, text: Tensor, present: Tensor) -> Tensor:
        scores: Tensor = self.inner(text, attention_mask=present).logits
        return scores


def bert() -> Setup:
    present = (torch.arange(LENGTH) < torch.randint(2, LENGTH, (ROWS, 1))).long()
    return Bert(), functional.cross_entropy, [tokens(ROWS, LENGTH), present, labels()]


class Encoder(nn.Module):
    """torch's own encoder with padded texts."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, 8, padding_idx=0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(8, CLASSES)

    def forward(self, text: Tensor) -> Tensor:
        scores: Tensor = self.out(self.layers(self.table(text), src_key_padding_mask=text == 0)[:, 0])
        return scores


def encoder() -> Setup:
    text = tokens(ROWS, LENGTH)
    text[:, 0] = 1
    return Encoder(), nn.CrossEntropyLoss(torch.tensor([0.5, 1.0, 2.0]), label_smoothing=0.1), [text, labels()]


class Cell(nn.Module):
    """A recurrent cell, unrolled in Python."""

    def __init__(self, cell: nn.RNNCellBase) -> None:
        super().__init__()
        self.cell = cell
        self.out = nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        state = None
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        scores: Tensor = self.out(state[0] if isinstance(state, tuple) else state)
        return scores


class Recurrent(nn.Module):
    """A recurrent layer of torch."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer
        self.out = nn.Linear(layer.hidden_size * (2 if layer.bidirectional else 1), CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.out(self.layer(x)[0][:, -1])
        return scores


def recurrent(make: Callable[[], nn.Module]) -> Callable[[], Setup]:
    return lambda: (make(), functional.cross_entropy, [torch.randn(ROWS, 4, 5), labels()])


class Experts(nn.Module):
    """Every token goes to the two experts that its router scores highest."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(5, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(5, 8), nn.SiLU(), nn.Linear(8, 5)) for _ in range(4))
        self.out = nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        total = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            total = total + expert(x) * (weights * (chosen == number)).sum(-1, keepdim=True)
        scores: Tensor = self.out((x + total).mean(1))
        return scores


SETUPS: dict[str, Callable[[], Setup]] = {
    "gpt": gpt,
    "llama": llama,
    "lora": lora,
    "hugging face gpt2": hugging_face_gpt2,
    "hugging face llama": hugging_face_llama,
    "bert": bert,
    "encoder": encoder,
    "gru cell": recurrent(lambda: Cell(nn.GRUCell(5, 6))),
    "lstm cell": recurrent(lambda: Cell(nn.LSTMCell(5, 6))),
    "lstm": recurrent(lambda: Recurrent(nn.LSTM(5, 4, num_layers=2, batch_first=True))),
    "gru": recurrent(lambda: Recurrent(nn.GRU(5, 4, bidirectional=True, batch_first=True))),
    "experts": recurrent(Experts),
}


COUSINS = ("hugging face llama", "encoder", "gru cell", "lstm cell")
"""What they capture, others capture too."""
OTHERS = [name for name in SETUPS if name not in COUSINS]


@pytest.mark.parametrize(
    "name",
    [
        *chosen_rows.named(OTHERS, "gpt", "lora", "experts", others=pytest.mark.slow),
        *(pytest.param(n, marks=pytest.mark.slow) for n in COUSINS),
    ],
)
def test_a_model_trains_like_its_own_loop(name: str) -> None:
    torch.manual_seed(3)
    model, loss, dataset = SETUPS[name]()
    require_own_loop(model, loss, dataset)


def test_a_tied_weight_gets_both_gradients() -> None:
    torch.manual_seed(4)
    model, loss, dataset = gpt()
    order = torch.arange(ROWS)[None]
    result = capture(model, loss, torch.optim.SGD(model.parameters(), lr=1.0), dataset, order)
    assert [slot for slot in result.names.slots if slot.startswith(("tokens", "head"))] == ["tokens.weight"]
    loss(model(dataset[0]), dataset[1]).backward()
    place = result.names.slots.index("tokens.weight")
    outputs = CpuExecutor(result.program, result.constants).run(result.state, 0)
    before, after = result.state[place], outputs[result.program.slots[place].producer]
    moved = torch.from_numpy(before.view(np.float32) - after.view(np.float32))
    torch.testing.assert_close(moved, model.tokens.weight.grad, rtol=1e-4, atol=1e-6)
    assert bool((model.tokens.weight.grad[WORDS - 1] != 0).any())


Case = tuple[Callable[[], nn.Module], tuple[int, ...], Callable[[Any, Any], Tensor]]
VISION_CLASSES, IMAGES = functional.cross_entropy, functional.mse_loss
MODELS: dict[str, Case] = {
    "cnn": (CNN, (1, 8, 8), VISION_CLASSES),
    "resnet18": (lambda: ResNet18(3, 2), (3, 8, 8), VISION_CLASSES),
    "resnet18 with a large stem": (lambda: ResNet18(3, 1, "large"), (3, 35, 35), VISION_CLASSES),
    "unet": (UNet, (1, 8, 8), IMAGES),
    "autoencoder": (Autoencoder, (1, 8, 12), IMAGES),
    "waves": (Waves, (2, 13), VISION_CLASSES),
}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2),
}


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("cnn", "sgd"),
        ("cnn", "adamw"),
        *(pytest.param(name, "sgd", marks=pytest.mark.slow) for name in ("resnet18", "unet", "autoencoder", "waves")),
        pytest.param("autoencoder", "adamw", marks=pytest.mark.slow),
        pytest.param("resnet18 with a large stem", "sgd", marks=pytest.mark.slow),
    ],
)
def test_one_step_is_that_of_torch_and_the_same_everywhere(name: str, optimizer: str) -> None:
    torch.manual_seed(4)
    make, shape, loss = MODELS[name]
    model = make()
    inputs = torch.randn(6, *shape)
    targets = torch.randint(0, 3, (6,)) if loss is VISION_CLASSES else torch.rand(6, *shape)
    order = torch.tensor([[4, 0, 5], [1, 2, 3]])
    captured = capture(model, loss, OPTIMIZERS[optimizer](model.parameters()), (inputs, targets), order)

    outputs = outputs_of(captured.program, captured.state, captured.constants)

    before = copy.deepcopy(model.state_dict())
    eager = OPTIMIZERS[optimizer](model.parameters())
    rows = order[0]
    loss(model(inputs[rows]), targets[rows]).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    eager.step()
    after = model.state_dict()
    for slot, words in zip(captured.aten.slots, next_state(captured.program, outputs), strict=True):
        if slot.name not in after:
            continue
        expected = after[slot.name].numpy()
        if slot.type.dtype != "float32":
            np.testing.assert_array_equal(words.view(np.int32), expected)
            continue
        got, gradient = words.view(np.float32), gradients.get(slot.name)
        # AdamW's first step is the sign of the gradient: where that is next to nothing, so is what it says.
        sure = np.ones(got.shape, bool)
        if optimizer == "adamw" and gradient is not None:
            sure = np.abs(gradient.numpy()) > 1e-5
        np.testing.assert_allclose(got[sure], expected[sure], rtol=2e-4, atol=2e-5, err_msg=slot.name)
        assert slot.name.endswith("running_mean") or not np.array_equal(got, before[slot.name].numpy()), slot.name
