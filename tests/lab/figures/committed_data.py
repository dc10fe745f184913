"""What the pictures are drawn from: tables and measurements that are committed in docs/ and .ci/."""

import html
import json
import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Measured:
    """A row of docs/benchmarks.md; ``ratio`` is ours over the peer's, if there is a peer."""

    value: float
    ratio: float | None


@dataclass(frozen=True)
class Caught:
    """An attack: the probability that 2 of 40 drawn segments find it, and with the screen; and whether it passes."""

    name: str
    drawn: float
    screened: float
    passes: bool


@dataclass(frozen=True)
class FalseRejects:
    """Intervals of honest trainings: beyond the thresholds, rejected, and the bound at 95 % of the rejected share."""

    name: str
    intervals: int
    beyond: int
    rejected: int
    bound: float | None


@dataclass(frozen=True)
class Move:
    """A move of the demo's first dispute: who, what it picked, what lies open afterwards, gas (none for the start)."""

    side: str
    kind: str
    picks: str
    remains: str
    gas: int | None


def benchmarks() -> dict[str, Measured]:
    """All rows of docs/benchmarks.md by name."""
    return {
        name: Measured(_number(value), _number(ratio) if ratio else None)
        for name, value, _, _, ratio in _rows("docs/benchmarks.md", 5)
    }


def operation_ratios() -> dict[str, float]:
    """Time of our kernels over torch's, by ATen operation."""
    return dict(json.loads((ROOT / "docs" / "operations.json").read_text())["speed"])


def gas_record() -> dict[str, int]:
    """Gas of the calls that the tests of the contracts make, by test."""
    return dict(json.loads((ROOT / ".ci" / "gas.json").read_text()))


def attacks() -> list[Caught]:
    """All attacks of docs/attacks.md that load, each by the worst of its targets, as counted there."""
    battery = {cells[0] for cells in _rows("docs/attacks.md", 13)}
    rows: dict[str, list[dict[str, float]]] = {}
    for target in json.loads((ROOT / "docs" / "attacks.json").read_text()).values():
        for name, row in target["attacks"].items():
            if name in battery:
                rows.setdefault(name, []).append(row)
    found = []
    for name, targets in rows.items():
        shares = [row for row in targets if row["segments"] == 40]
        if shares and not any(row["refused"] for row in targets):
            drawn, screened = (min(row[key] for row in shares) for key in ("caught", "caught_screened"))
            found.append(Caught(name, drawn, screened, any(row["passes_tolerance"] for row in targets)))
    return found


def false_rejects() -> list[FalseRejects]:
    """The table of docs/litepaper.md."""
    found: list[FalseRejects] = []
    last = ""
    for name, optimizers, _, *counts in _rows("docs/litepaper.md", 8):
        last = name.replace("the same", last.partition(" (")[0])
        for number, optimizer in enumerate(optimizers.split("; ")):
            intervals, beyond, rejected, bound = (
                _number(_part(cell, number).removesuffix(" each") or "nan") for cell in counts[:4]
            )
            told = f"{last.partition(' (')[0]}, {optimizer}"
            least = None if math.isnan(bound) else bound
            found.append(FalseRejects(told, int(intervals), int(beyond), int(rejected), least))
    return found


def demo_moves() -> list[Move]:
    """The first dispute of docs/demo.svg."""
    lines: dict[str, str] = {}
    for y, text in re.findall(r'<text[^>]*y="([\d.]+)"[^>]*>(.*?)</text>', (ROOT / "docs" / "demo.svg").read_text()):
        lines[y] = lines.get(y, "") + html.unescape(text).replace("\xa0", " ")
    moves: list[Move] = []
    for line in lines.values():
        cells = re.split(r" {2,}", line.strip())
        if re.match(r"(challenger|asserter) +[A-Z]", line.strip()):
            side, kind = line.split()[:2]
            gas = int(_number(cells[-1])) if cells[-1].replace(",", "").isdigit() else None
            picks, remains = cells[-2:] if gas is None else cells[-3:-1]
            moves.append(Move(side, kind, picks, remains, gas))
        elif moves:
            return moves
    raise LookupError("docs/demo.svg shows no dispute")


def layers() -> list[list[str]]:
    """The order of packages in pyproject.toml, the highest first; packages in one row don't know each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [[name.strip() for name in layer.split("|")] for layer in contracts[0]["layers"]]


def _rows(path: str, columns: int) -> Iterator[list[str]]:
    """Cells of the lines of a document's tables that have so many columns, without heads and emphasis."""
    lines = (ROOT / path).read_text().splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        cells = [cell.strip().replace("*", "").replace("`", "") for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == columns and "---" not in line and "---" not in after:
            yield cells


def _part(cell: str, number: int) -> str:
    """A cell has one part for all optimizers of its row, or one for each; "none" is no number."""
    parts = cell.replace("none", "").split("; ")
    return parts[number] if len(parts) > number else parts[0]


def _number(text: str) -> float:
    return float(text.replace(",", ""))
