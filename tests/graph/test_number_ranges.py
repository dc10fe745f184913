"""Integers that 32 bits may not hold are refused with their line; whatever fits is captured as before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Capture, capture


class Net(nn.Module):
    count: Tensor

    def __init__(self, code: Callable[[Tensor], Tensor], counted: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.layer, self.code, self.counted = nn.Linear(4, 3), code, counted
        self.register_buffer("count", torch.tensor(1))

    def forward(self, x: Tensor) -> Tensor:
        if self.counted is not None:
            self.count = self.counted(self.count)
        logits: Tensor = self.layer(x + self.code(x))
        return logits


def captured(
    code: Callable[[Tensor], Tensor], counted: Callable[[Tensor], Tensor] | None = None, steps: int = 2
) -> Capture:
    torch.manual_seed(0)
    net = Net(code, counted)
    data = [torch.randint(0, 100, (8, 4)).float(), torch.randint(0, 3, (8,))]
    data[0][0, 0], data[0][0, 1] = 0.0, 99.0
    order = torch.arange(8).reshape(2, 4).repeat(steps // 2, 1)
    return capture(net, nn.CrossEntropyLoss(), torch.optim.SGD(net.layer.parameters(), 0.1), data, order)


def added_to_one_place(numbers: Tensor) -> Tensor:
    return torch.zeros(4, dtype=torch.int64).index_put((torch.zeros(4, dtype=torch.int64),), numbers, accumulate=True)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (lambda x: ((x.long() * 100000003) % 1009).float(), r"mul\.Tensor gives 64-bit integers from 0 to 9900000297"),
        (lambda x: (x * 1e7).long().sum(1, keepdim=True).float(), r"sum\.dim_IntList gives 64-bit integers"),
        (lambda x: (x.long() * 10**6).cumsum(1).pow(2).float(), r"pow\.Tensor_Scalar gives 64-bit integers"),
        (lambda x: ((x * 3e7).long() > 5).float(), r"numbers of 0 to .*e\+09 become 64-bit integers"),
        (lambda x: x.exp().long().float(), r"become 64-bit integers.*x\.clamp\(0, 1000\)"),
        (lambda x: (torch.full((4,), 3_000_000_000) > 5).float(), r"full\.default gives 64-bit integers"),
        (lambda x: (x.long() > 3_000_000_000).float(), "the integer 3000000000 does not fit in 32 bits"),
        (lambda x: (x.long() + 3_000_000_000).float(), r"add\.Tensor gives 64-bit integers from 3000000000"),
        (lambda x: x.long().prod(1, keepdim=True).pow(4).float(), "gives 64-bit integers"),
        (lambda x: added_to_one_place(x.long()[0] * 20_000_000).float(), r"index_put\.default gives 64-bit integers"),
    ],
)
def test_integers_that_may_wrap_are_refused_with_their_line(code: Callable[[Tensor], Tensor], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as refused:
        captured(code)
    assert "test_number_ranges.py:" in str(refused.value)


@pytest.mark.parametrize(
    "code",
    [
        lambda x: ((x.long() * 1000003) % 1009).float() / 1009,
        lambda x: (x * 1e5).long().sum(1, keepdim=True).float() / 1e7,
        lambda x: x.exp().clamp(0, 1000).long().float() / 1000,
        lambda x: ((x.log().clamp(0, 9) * 3).long() % 7).float(),
        lambda x: torch.where(x > 3, x.long(), -x.long()).float() / 100,
    ],
)
def test_integers_that_fit_are_those_of_torch(code: Callable[[Tensor], Tensor]) -> None:
    step = captured(code)
    outputs = CpuExecutor(step.program, step.constants).run(step.state, 0)
    assert len(outputs) == len(step.program.nodes)
    torch.manual_seed(0)
    net = Net(code)
    data, target = torch.randint(0, 100, (8, 4)).float(), torch.randint(0, 3, (8,))
    data[0, 0], data[0, 1] = 0.0, 99.0
    loss = nn.CrossEntropyLoss()(net(data[:4]), target[:4])
    own = outputs[step.names.observed["loss"]].view("float32")
    torch.testing.assert_close(torch.tensor(own), loss.detach(), rtol=1e-5, atol=1e-6)


def test_a_counter_is_bounded_by_the_number_of_steps() -> None:
    captured(torch.zeros_like, lambda count: count + 1000)
    captured(torch.zeros_like, lambda count: (count * 75) % 65537, steps=20)
    with pytest.raises(UnsupportedError, match=r"add\.Tensor gives 64-bit integers from 1073741825 to 22548578305"):
        captured(torch.zeros_like, lambda count: count + 2**30, steps=20)
    with pytest.raises(UnsupportedError, match=r"count holds integers that may leave 32 bits within 20 steps"):
        captured(torch.zeros_like, lambda count: count * 3, steps=20)


def test_a_clamp_to_the_greatest_float_that_fits_is_captured() -> None:
    captured(lambda x: ((x * 1e9).clamp(-2147483648.0, 2147483520.0).long() % 97).float())
    captured(lambda x: ((x * 1e9).clamp(max=2147483520.0).long() % 97).float())


def test_a_bound_that_rounds_to_more_than_fits_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"numbers of .* to 2\.14748e\+09 become 64-bit integers"):
        captured(lambda x: ((x * 1e9).clamp(0.0, 2147483647.0).long() % 97).float())
