"""Charts of what was measured: speed, gas, detection, false rejects."""

from lab.figures.committed_data import attacks, benchmarks, demo_moves, false_rejects, gas_record, operation_ratios
from lab.figures.row_charts import COLORS, FAINT, LIMIT, Scale, bars, card, dots, text
from pol.report.elements.html_elements import Markup, element

STEPS = {
    "GPT, a step": "gpt_step_ratio",
    "GPT, a step, two threads": "gpt_step_ratio_two_threads",
    "GPT, torch.compile": "gpt_step_compiled_ratio",
    "ResNet-18, a step": "resnet_step_ratio",
    "ResNet-18, a step, two threads": "resnet_step_ratio_two_threads",
    "perceptron, a step": "exact_mlp_step_ratio",
    "matrix products, mean": "matmul_ratio_geomean",
    "matrix products, slowest": "matmul_ratio_worst",
    "convolutions, mean": "conv_ratio",
    "elementwise and reductions, mean": "elementwise_ratio_geomean",
    "perceptron, the whole loop": "exact_loop_ratio",
    "small matrix products, slowest": "small_matmul_ratio_worst",
}
CALLS = {
    "submit a task": "test_task_submit",
    "bid": "test_task_bid",
    "award a task": "test_task_award",
    "commit a proof": "test_task_commit",
    "claim a seat": "test_seat_claim",
    "post a verdict": "test_verdict_post",
    "disclose": "test_verdict_disclose",
    "demand data": "test_data_demand",
    "answer with data": "test_data_answer",
    "challenge a verdict": "test_challenge",
    "object to a segment": "test_objection_open",
    "settle a lost challenge": "test_challenge_settle_lost",
    "settle an accepted task": "test_settle_accepted",
    "submit a round of drand": "test_drand_submit",
    "rounds: join": "test_rounds_join",
    "rounds: open a dispute": "test_rounds_dispute",
}


def training_speed() -> Markup:
    """Steps and kernels against PyTorch."""
    measured = benchmarks()
    rows = {name: [measured[row].ratio] for name, row in STEPS.items()}
    ticks = {0.8: "0.8", 1.0: "1", 1.2: "1.2", 1.4: "1.4"}
    return dots(
        rows, ["our time / PyTorch's"], "Speed of steps and kernels", Scale(0.8, 1.4, 240, 540), ticks, limit=1.0
    )


def operation_speed() -> Markup:
    """All measured operations, the fastest first, on a logarithmic scale."""
    ratios = sorted((ratio, name) for name, ratio in operation_ratios().items())
    width, height, left, top = 560, 300, 44, 40
    across = Scale(0, len(ratios) - 1, left, width - 16)
    up = Scale(ratios[0][0], ratios[-1][0], height - 34, top, log=True)
    parts = []
    for value in (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64):
        if ratios[0][0] <= value <= ratios[-1][0]:
            color = LIMIT if value == 1 else FAINT
            parts.append(element("line", x1=left, x2=width - 16, y1=up.x(value), y2=up.x(value), stroke=color))
            parts.append(text(left - 6, up.x(value) + 4, f"{value:g}", "end"))
    for number, (ratio, name) in enumerate(ratios):
        tip = element("title", f"{name}: {ratio}")
        parts.append(element("circle", tip, cx=across.x(number), cy=up.x(ratio), r=2.6, fill=COLORS[0]))
    slower = sum(ratio > 1 for ratio, _ in ratios)
    told = f"{len(ratios)} operations, the fastest first; {slower} are slower than PyTorch's"
    parts.append(text(width / 2, height - 10, told, "middle"))
    return card(parts, "Our time / PyTorch's, by operation", width, height)


def move_gas() -> Markup:
    """Gas of each move of the demo's first dispute."""
    moves = [(number, move) for number, move in enumerate(demo_moves()) if move.gas is not None]
    rows = {f"{number}. {move.side}: {move.kind}": float(move.gas or 0) for number, move in moves}
    return bars(rows, "Gas by move of a dispute", f"{sum(rows.values()):,.0f} gas together")


def call_gas() -> Markup:
    """Gas of calls of the market, as the tests of the contracts record it."""
    record = gas_record()
    return bars({name: float(record[test]) for name, test in CALLS.items()}, "Gas by call of the market", "gas")


def detection() -> Markup:
    """Each attack: found by two of 40 segments, at random and with the screen."""
    found = sorted(attacks(), key=lambda attack: (attack.drawn, attack.screened, attack.name))
    return dots(
        {attack.name: [attack.screened, attack.drawn] for attack in found},
        ["one drawn, one by the screen", "two drawn"],
        "Found by replaying 2 of 40 segments",
        Scale(0.0, 1.0, 200, 540),
        {0.0: "0", 0.25: "25 %", 0.5: "50 %", 0.75: "75 %", 1.0: "100 %"},
        marked=frozenset(attack.name for attack in found if attack.passes),
    )


def honest_rejects() -> Markup:
    """Honest intervals beyond the thresholds, those rejected, and the bound of the rejected share."""
    rows: dict[str, list[float | None]] = {}
    for kind in false_rejects():
        if kind.bound is not None:
            rows[f"{kind.name.replace('normalization', 'norm')} ({kind.intervals:,})"] = [
                kind.bound,
                kind.beyond / kind.intervals or None,
                kind.rejected / kind.intervals or None,
            ]
    ticks = {0.0003: "0.03 %", 0.001: "0.1 %", 0.01: "1 %", 0.1: "10 %"}
    return dots(
        rows,
        ["bound of the rejected, 95 %", "beyond the thresholds", "rejected"],
        "Honest intervals that thresholds doubt (none: no mark)",
        Scale(0.0002, 0.4, 280, 600, log=True),
        ticks,
    )
