"""Pictures of how the protocol works: flow of data, layers, commitments, a dispute, claims of rounds."""

import re
from collections.abc import Sequence

from lab.figures.committed_data import demo_moves, layers
from lab.figures.row_charts import COLORS, FAINT, INK, LIMIT, ROW, card, line, text
from pol.report.elements.html_elements import Markup, element

BLUE, SAND, GREEN, ROSE = "#e3f0fa", "#fdf3dc", "#e2f4ee", "#fbe6ee"
SIDES = {"challenger": COLORS[5], "asserter": COLORS[0]}

FLOW = (
    ("model, loss, optimizer, data", "your code: ordinary PyTorch", SAND),
    ("pol/graph/capture", "one training step as a flat ATen graph", BLUE),
    ("pol/graph/lowering", "a step program: maps and folds of scalar programs", BLUE),
    ("pol/execution", "states and traces: the same bits on every machine", BLUE),
    ("pol/commitments", "Merkle roots of tensors, states and traces", BLUE),
    ("pol/training", "task, checkpoints, learning proof", BLUE),
    ("pol/claims, pol/verification", "drawn segments, replays, verdict", BLUE),
    ("pol/roles through pol/chain", "roots, verdicts and money", BLUE),
    ("pol/dispute", "moves of a dispute", BLUE),
)
GOES_TO = {5: "a store: files by digest", 7: "contracts/market", 8: "contracts/dispute"}

TREE = (
    ("a training", ("S_0", "S_1", "...", "S_k", "S_k+1", "...", "S_n"), 3, "roots of states, in an append-only log"),
    ("one segment", ("step 150", "...", "step 162", "...", "step 174"), 2, "a state after each step"),
    ("one step", ("forward", "...", "backward", "...", "update"), 2, "its trace: the outputs of all nodes"),
    ("one tensor", ("leaf 0", "leaf 1", "...", "leaf m"), 0, "leaves of 256 bytes"),
    ("one element", ("term 0", "term 1", "...", "term K"), 1, "the accumulators of its fold"),
    ("one instruction", ("FFMA(0x3d9f2a10, 0xbe0c4411, 0x3c5ef2d8)",), 0, "OneStep.sol executes it"),
)


def data_flow() -> Markup:
    """Modules from the user's code down to the contracts."""
    parts: list[Markup] = []
    step = 52
    for number, (name, told, color) in enumerate(FLOW):
        y = 40 + number * step
        parts += box(20, y, 330, 38, color, name, told)
        if number:
            parts += arrow((185, y - step + 38), (185, y))
        if number in GOES_TO:
            parts += [*arrow((350, y + 19), (400, y + 19)), *box(400, y, 160, 38, GREEN, GOES_TO[number])]
    parts += arrow((480, 40 + 7 * step + 38), (480, 40 + 8 * step))
    return card(parts, "From a training step to the chain", 580, 52 + len(FLOW) * step)


def package_layers() -> Markup:
    """The order of packages as pyproject.toml states it: each imports only from those below."""
    parts: list[Markup] = []
    for number, row in enumerate(layers()):
        width = 520 / len(row)
        for place, name in enumerate(row):
            parts += box(20 + place * width, 40 + number * 28, width - 6, 23, BLUE, name.replace(".", "/"))
    return card(parts, "Each package imports only from those below it", 560, 52 + len(layers()) * 28)


def commitments() -> Markup:
    """The tree from a training down to one instruction; the disputed part is colored."""
    parts: list[Markup] = []
    above: tuple[float, float] | None = None
    for number, (name, cells, chosen, told) in enumerate(TREE):
        y, width = 62 + number * 62, 540 / len(cells)
        if above is not None:
            funnel = f"{above[0]:.0f},{y - 34} {above[1]:.0f},{y - 34} 560,{y} 20,{y}"
            parts.append(element("polygon", points=funnel, fill="#f1f3f5"))
        for place, cell in enumerate(cells):
            color = ROSE if place == chosen else BLUE
            parts += box(20 + place * width, y, width - 4, 28, color, cell)
        # Over the funnel, which begins where the row above ends.
        parts.append(text(20, y - 8, f"{name}: {told}", color="#495057"))
        above = (20 + chosen * width, 20 + (chosen + 1) * width - 4)
    return card(parts, "Every claim is a root in one tree of commitments", 580, 62 + len(TREE) * 62 - 20)


def dispute_walk() -> Markup:
    """The demo's first dispute: each move picks a part of what lies open, down to one instruction."""
    moves = demo_moves()
    parts: list[Markup] = []
    for number, move in enumerate(moves):
        y, color = 44 + number * 56, SIDES[move.side]
        gas = f", {move.gas:,} gas" if move.gas else ""
        parts.append(text(20, y + 12, f"{number}. {move.side} picks {move.picks}{gas}", color=color))
        if number + 1 == len(moves):
            parts.append(text(20, y + 30, "the contract executes it: the claim was false", color=LIMIT))
            break
        count = _parts_of(move.remains)
        low, high = _share(move.remains, moves[number + 1].picks)
        left, right = 20 + 520 * low, 20 + 520 * high
        parts.append(element("rect", x=20, y=y + 20, width=520, height=14, fill=BLUE))
        for cell in range(1, count):
            x = 20 + 520 * cell / count
            parts.append(line((x, y + 20), (x, y + 34), "#ffffff"))
        picked = SIDES[moves[number + 1].side]
        parts.append(element("rect", x=left, y=y + 20, width=max(right - left, 3), height=14, fill=picked))
        parts.append(
            element("polygon", points=f"{left},{y + 36} {right},{y + 36} 540,{y + 58} 20,{y + 58}", fill=FAINT)
        )
        parts.append(text(540, y + 12, move.remains, "end"))
    # The funnels lie behind the words of the next row.
    funnels = [part for part in parts if part.startswith("<polygon")]
    others = [part for part in parts if not part.startswith("<polygon")]
    return card([*funnels, *others], "A dispute narrows down to one instruction", 560, 44 + len(moves) * 56)


def round_claims() -> Markup:
    """Two rounds of three workers: each box is one signed claim, each arrow a bound input."""
    parts: list[Markup] = [*box(20, 126, 80, 40, SAND, "plan", "initial values")]
    before = (100.0, 146.0)
    for number in range(2):
        x = 140 + number * 280
        for worker in range(3):
            y = 50 + worker * 76
            color = ROSE if (number, worker) == (1, 1) else BLUE
            parts += arrow(before, (x, y + 20))
            parts += box(x, y, 110, 40, color, f"worker {worker + 1}", f"round {number}: steps")
            parts += arrow((x + 110, y + 20), (x + 150, 146))
        parts += box(x + 150, 126, 90, 40, GREEN, "merge", f"round {number}")
        before = (x + 240.0, 146.0)
    parts.append(text(20, 296, "A box is a claim that one worker signs; an arrow is an input bound to a signed end."))
    parts.append(text(20, 296 + ROW, "A false claim (red) is found by its roots or by a replay, and blames one key."))
    return card(parts, "A training of many workers is a graph of claims", 680, 330)


def box(x: float, y: float, width: float, height: float, color: str, name: str, told: str = "") -> Sequence[Markup]:
    """A rounded box with a name, and a smaller line below it."""
    middle, base = x + width / 2, y + height / 2 + (4 if not told else -3)
    parts = [
        element("rect", x=x, y=y, width=width, height=height, rx=4, fill=color, stroke="#adb5bd"),
        text(middle, base, name, "middle", font_weight="bold" if told else "normal"),
    ]
    return [*parts, text(middle, base + 15, told, "middle", "#495057", font_size=11)] if told else parts


def arrow(start: tuple[float, float], end: tuple[float, float]) -> Sequence[Markup]:
    """A straight arrow; its head is a triangle along the line."""
    (x, y), (to_x, to_y) = start, end
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    across, down = (to_x - x) / length * 7, (to_y - y) / length * 7
    points = f"{to_x:.1f},{to_y:.1f} {to_x - across - down / 2:.1f},{to_y - down + across / 2:.1f} "
    points += f"{to_x - across + down / 2:.1f},{to_y - down - across / 2:.1f}"
    return [line(start, end, "#868e96"), element("polygon", points=points, fill=INK)]


def _numbers(told: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", told)]


def _parts_of(remains: str) -> int:
    """How many parts lie open: "8 parts", "64 words", "2 instructions"."""
    return _numbers(remains)[-1]


def _share(remains: str, picks: str) -> tuple[float, float]:
    """The picked part as a share of what lies open: of a range if it has the same unit, else of its parts."""
    ranged = re.match(r"\w+ (\d+) to (\d+)", remains)
    first, last = _numbers(picks)[0], _numbers(picks)[-1]
    if ranged:
        low, size = int(ranged[1]), int(ranged[2]) - int(ranged[1]) + 1
        return (first - low) / size, (last + 1 - low) / size
    return first / _parts_of(remains), (last + 1) / _parts_of(remains)
