"""All that is refused is said at once; and every refusal is one line with a place and one way out."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from cli_runner import Said, pol
from pol.errors import UnsupportedError
from pol.graph import check_capture
from pol.graph.capture import capture

INPUTS, LABELS = torch.randn(12, 6, generator=torch.manual_seed(1)), torch.arange(12) % 5
ORDER = torch.arange(12).reshape(3, 4)


class Net(nn.Module):
    """A linear layer before a change."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.linear, self.change = nn.Linear(6, 5), change
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        return self.change(self.linear(x))


def many(x: Tensor) -> Tensor:
    x = torch.linalg.svdvals(x[:, :4]).sum() * x
    if x.sum() > 0:
        x = x * 2
    x = x.double().sum(0, keepdim=True).float() + x
    for _ in range(2):
        x = x + torch.special.bessel_j0(x).detach()
    picked = x[x > 0].sort()[0]
    return x + picked.mean() + torch.special.bessel_j1(x).detach()


def arguments(change: Callable[[Tensor], Tensor], **changes: Any) -> dict[str, Any]:
    model = Net(change)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    given = {"loss": functional.cross_entropy, "dataset": (INPUTS, LABELS), "order": ORDER}
    return {"model": model, "optimizer": optimizer, **given, **changes}


def test_all_refusals_are_found_and_a_capture_raises_one_of_them() -> None:
    given = arguments(many)
    found = check_capture(**given)
    lines = {item.line.partition(": ")[2]: item for item in found}
    for code in ("if x.sum() > 0:", "picked = x[x > 0].sort()[0]", "x = x + torch.special.bessel_j0(x).detach()"):
        assert code in lines, list(lines)
    assert any("linalg.svdvals" in line for line in lines)
    assert any("double()" in line for line in lines)
    assert lines["x = x + torch.special.bessel_j0(x).detach()"].times == 2
    assert all(item.way_out and item.operation for item in found)
    with pytest.raises(UnsupportedError):
        capture(**given)


def test_nothing_is_found_where_a_capture_succeeds() -> None:
    assert check_capture(**arguments(torch.tanh)) == []


def test_arguments_and_optimizers_are_found_beside_operations() -> None:
    given = arguments(lambda x: torch.special.bessel_j0(x).detach() + x)
    given["model"].register_buffer("wide", torch.ones(2).double())
    given["model"].linear.weight.register_hook(lambda gradient: gradient)
    given["optimizer"] = torch.optim.LBFGS(given["model"].parameters())
    text = " ".join(f"{item.operation} {item.line}" for item in check_capture(**given))
    for part in ("wide is float64", "gradient hook", "LBFGS", "bessel_j0"):
        assert part in text


def reads(x: Tensor) -> Tensor:
    return x * x.max().item()


def decides(x: Tensor) -> Tensor:
    return x if x.sum() > 0 else -x


def long_line(x: Tensor) -> Tensor:
    # fmt: off
    return x + torch.special.bessel_j0(x.detach()) + torch.zeros(1) + torch.zeros(1) + torch.zeros(1) + torch.zeros(1) + torch.zeros(1) + torch.zeros(1) + torch.zeros(1) + torch.zeros(1)  # noqa: E501  # it's about long lines
    # fmt: on


OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "no rule": lambda x: x + torch.special.bessel_j0(x.detach()),
    "a long line": long_line,
    "reads": reads,
    "decides": decides,
    "masks": lambda x: x + x[x > 0].unique().sum(),
    "double constant": lambda x: (x * torch.arange(5.0, dtype=torch.float64)).float(),
    "double": lambda x: x.double().log_softmax(1).float(),
    "half": lambda x: (x.half() * 2).float(),
    "complex": lambda x: torch.fft.fft(x).prod(1, keepdim=True).abs() + x,
    "eig": lambda x: torch.linalg.eigvalsh(x[:4, :4]).sum() + x,
    "generator": lambda x: x + torch.rand(5, generator=torch.Generator()),
    "numpy": lambda x: x + float(x.detach().numpy().sum()),
    "wide integers": lambda x: x + (x * 1e9).long(),
    "fails": lambda x: x @ torch.ones(7, 7),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_refusal_of_an_operation_is_one_line_with_a_place_and_a_way_out(name: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        capture(**arguments(OPERATIONS[name]))
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600, text
    assert re.match(r"test_check_capture\.py:\d+: .{1,120} -- ", text), text
    assert re.search(
        r"use |write |replace |draw |convert |compute |keep |bound |give |leave |run ", text.partition(" -- ")[2]
    ), text
    assert ("own loop" in text) == (name == "fails"), text


def test_a_step_that_runs_is_not_told_to_run() -> None:
    def untraceable(x: Tensor) -> Tensor:
        return x + float(torch.from_numpy(x.detach().cpu().numpy()).sum())

    def leaf(x: Tensor) -> Tensor:
        return x * torch.tensor(x.shape).sum().item() if x.data_ptr() else x

    for change in (untraceable, leaf):
        with pytest.raises(UnsupportedError) as caught:
            capture(**arguments(change))
        assert "own loop" not in str(caught.value)


SCRIPT = """
import torch
from torch import nn
from pol import capture

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        x = self.linear(x)
        return {line}

model = Net()
arguments = (
    model, nn.functional.cross_entropy, torch.optim.SGD(model.parameters(), 0.1),
    (torch.randn(8, 4), torch.arange(8) % 3), torch.arange(8).reshape(2, 4),
)

def given():
    return arguments

def unordered():
    return arguments[:4]

def nonsense():
    return arguments[:2]

if __name__ == "__main__":
    capture(*arguments)
    print("trained")
"""


@pytest.mark.parametrize("function", ["", ":given", ":unordered"])
def test_the_command_says_all_at_once_and_ends_with_1(tmp_path: Path, function: str) -> None:
    bad, good = tmp_path / "bad.py", tmp_path / "good.py"
    bad.write_text(
        SCRIPT.replace("{line}", "x + torch.special.bessel_j0(x.detach()) + torch.special.bessel_j1(x.detach())")
    )
    good.write_text(SCRIPT.replace("{line}", "torch.tanh(x)"))
    found = pol("capture", "--check", "--json", f"{bad}{function}")
    assert found.code == 1
    refused = json.loads(found.out)["refused"]
    assert {"aten.special_bessel_j0.default", "aten.special_bessel_j1.default"} <= {
        item["operation"].split()[0] for item in refused
    }
    assert all(item["line"].startswith("bad.py:13: return x + torch.special.bessel_j0") for item in refused)
    table = pol("capture", "--check", f"{bad}{function}")
    assert table.code == 1
    assert "bessel_j0" in table.out
    fine = pol("capture", "--check", f"{good}{function}")
    assert fine.code == 0
    assert "nothing is refused" in fine.out
    assert ("trained" in fine.out) == (not function)


def test_the_command_refuses_scripts_that_capture_nothing(tmp_path: Path) -> None:
    script = tmp_path / "empty.py"
    script.write_text("x = 1\n")
    for given, message in ((str(script), "captured nothing"), (f"{script}:f", "no function f"), ("none.py", "no file")):
        result = pol("capture", "--check", given)
        assert result.code not in {0, 1}
        assert message in result.out


def test_the_command_says_what_a_function_has_to_return(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("{line}", "x"))
    said = pol("capture", "--check", f"{script}:nonsense")
    assert said == Said(1, match="pol: the function returns 2 parts: return (model, loss, optimizer, dataset)")
    assert "Traceback" not in said.out
