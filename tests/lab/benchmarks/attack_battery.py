"""The attack battery against every model, optimizer and segment length.

`PYTHONPATH=tests python -m lab.benchmarks.attack_battery` writes docs/attacks.json and the tables of docs/attacks.md.
"""

import json
import math
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from lab.attacks import ballast, honest_reruns, noisy_slots, target_tasks
from lab.attacks.attack_target import Target
from lab.attacks.battery import ATTACKS, HIDING
from lab.attacks.forgery import Attack
from lab.attacks.stolen_work import SAME_TASK
from lab.attacks.verification_outcome import Findings, limits, mount
from lab.benchmarks.figure import Figure
from lab.json_rows import json_rows
from pol.verification.examination.screening import ranked, suspicions

SIZES: Mapping[str, tuple[int, tuple[int, int]]] = {"mlp": (400, (10, 100)), "cnn": (200, (5, 50))}
"""Steps of the training of each model, and of its segments: of the shorter ones there are 40, so that 5 % are two."""
KINKED = (("wide", "sgd"), ("wide", "adamw"), ("tuned", "adamw"))
"""Further targets for what hides in the tolerance: with a kink near in every batch, and with dead units."""
SEGMENTS = 40
SHARE = 0.05
"""Of the segments may be replayed."""
SURE = 0.99
HARMLESS = 0.01
"""Of the accuracy, or of the samples that a trigger reaches."""
Row = Mapping[str, Any]
Measured = Mapping[str, Mapping[str, Any]]
"""By target: the spread of honest runs, the limits, and a row for each attack."""


def measure(attacks: Sequence[Attack] = (*ATTACKS, SAME_TASK), workers: int = 2) -> dict[str, Any]:
    """All attacks against all targets, in processes of their own."""
    tasks = [(model, optimizer) for model in target_tasks.MODELS for optimizer in target_tasks.OPTIMIZERS]
    tasks += KINKED
    names = [attack.name for attack in attacks]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        hiding = [attack.name for attack in attacks if attack in HIDING]
        jobs = [pool.submit(_measure, *task, hiding if task in KINKED else names) for task in reversed(tasks)]
        found: dict[str, Any] = {}
        for job in reversed(jobs):
            found |= job.result()
    return found


def _measure(model: str, optimizer: str, names: Sequence[str]) -> dict[str, Any]:
    torch.set_num_threads(1)
    # A perceptron of another width or start is measured as the perceptron, in the short segments alone.
    steps, intervals = SIZES[model] if model in SIZES else (SIZES["mlp"][0], SIZES["mlp"][1][:1])
    step = target_tasks.captured(model, optimizer, steps)
    found = {}
    for interval in intervals:
        target = target_tasks.target(model, optimizer, steps, interval, step)
        runs = honest_reruns.spread(target, tuple(honest_reruns.WAYS))
        greatest = [max(run[component] for run in runs.values()) for component in range(3)]
        scale = (greatest[0], greatest[1], greatest[2])
        attacks = [attack for attack in (*ATTACKS, SAME_TASK) if attack.name in names and attack.applies(target)]
        found[f"{model} {optimizer} {interval}"] = {
            "honest": runs,
            "limits": limits(target),
            "attacks": {attack.name: row(target, mount(attack, target), scale) for attack in attacks},
        }
    return found


def row(target: Target, findings: Findings, scale: tuple[float, float, float]) -> dict[str, Any]:
    """What is measured of one attack; infinite distances are None."""
    draws = max(1, int(SHARE * target.segments))
    chosen: tuple[int, ...] = ()
    if findings.refused is None:
        oddest = ranked(suspicions(target.task.program, findings.forgery.states))
        chosen = tuple(suspicion.segment for suspicion in oddest[: max(1, draws // 2)])
    return {
        "cost": round(findings.cost, 4),
        "refused": findings.refused is not None,
        "looks": target.looks,
        "segments": target.segments,
        "cheated": len(findings.cheated),
        "rejected": len(findings.rejected),
        "detection": findings.detection,
        "detection_alone": findings.detection_alone,
        "caught": findings.caught(draws),
        "caught_screened": findings.caught(max(draws, len(chosen)), chosen),
        "draws": findings.draws_for(SURE),
        "of_limit": _finite(findings.of_limit),
        "of_honest": _finite(findings.ratio(scale)),
        "rejected_alone": len(findings.rejected_alone),
        "marked": sum(finding.is_outside for finding in findings.segments),
        "found_by": sorted(reason.value for reason in findings.found_by),
        "drift": {drift.component.name.lower(): [drift.score, drift.limit] for drift in findings.drifts},
        "passes_tolerance": findings.passes_tolerance,
        "passes_exact": findings.passes_exact,
        "damage": dict(findings.forgery.damage),
    }


def attack_figures() -> dict[str, Figure]:
    """The battery, measured now."""
    return figures(measure())


def figures(measured: Measured) -> dict[str, Figure]:
    """The figures of the battery."""
    battery = {attack.name: attack for attack in ATTACKS}
    rows = [
        (name, key, row) for key, part in measured.items() for name, row in part["attacks"].items() if name in battery
    ]
    undetected = {name for name, _, row in rows if row["passes_exact"] and row["cost"] < 1 - 1e-9}
    tolerated = {name: row["cost"] for name, _, row in rows if row["passes_tolerance"]}
    visible = [row for name, _, row in rows if not battery[name].hides and row["detection"] is not None]
    everywhere = [row for row in visible if row["cheated"] == row["segments"]]
    result = {
        "attacks": Figure(len(battery), "attacks"),
        "undetected_in_exact_mode": Figure(len(undetected), "attacks below the cost of honest training"),
        "survive_tolerance": Figure(len(tolerated), "attacks"),
        "survive_tolerance_least_cost": Figure(min(tolerated.values(), default=1.0), "of honest training"),
        "detection_when_drawn": Figure(
            min(row["detection_alone"] for row in visible), "least of all that leave a trace, by thresholds alone"
        ),
        "detection_when_drawn_looks": Figure(
            min(row["detection"] for row in visible), "least of all that leave a trace, with second looks"
        ),
        "detection_5_percent": Figure(
            min(row["caught"] for row in everywhere if row["segments"] == SEGMENTS),
            f"least of all that touch every one of {SEGMENTS} segments",
        ),
        "draws_99": Figure(
            max(_draws_of_many(row["detection"]) for row in everywhere),
            "draws that find with 99 % what touches every segment of a long training, at most",
        ),
    }
    concentrated = [
        row
        for name, key, row in rows
        if row["segments"] == SEGMENTS and 0 < row["cheated"] <= row["segments"] / 10 and not battery[name].hides
    ]
    for what, column in (("", "caught"), ("_screened", "caught_screened")):
        mean = sum(row[column] for row in concentrated) / max(1, len(concentrated))
        unit = "mean of all that touch up to 10 % of the segments"
        result[f"detection_5_percent_concentrated{what}"] = Figure(mean, unit)
    lengths = {}
    for key, part in measured.items():
        found = [
            row["of_honest"]
            for name, row in part["attacks"].items()
            if name in battery and not battery[name].hides and row["of_honest"] is not None
        ]
        if found:
            lengths["separation_" + key.replace(" ", "_")] = Figure(min(found), "times the greatest honest distance")
    least = min(figure.value for figure in lengths.values())
    unit = "times the greatest honest distance; without those that hide in the tolerance"
    return {**result, "separation_min": Figure(least, unit), **lengths}


def admission_figures(seeds: Sequence[int] = range(5)) -> dict[str, Figure]:
    """How many tasks with a noisy slot are admitted as they are, and how many pushes do damage if slots are weighed."""
    found: dict[str, Figure] = {}
    for push in noisy_slots.PUSHES:
        build, interval = push.build, push.interval
        admitted, damaged, worst = 0, 0, 0.0
        for seed in seeds:
            admitted += noisy_slots.is_admitted(build, interval, seed)
            task, profile = noisy_slots.scaled(build, interval, seed)
            state, rejected = noisy_slots.pushed(task, profile.thresholds, push)
            harm = max(noisy_slots.damage(task, build, state))
            damaged += not rejected and harm > HARMLESS
            worst = max(worst, harm)
        found[f"{push.name}_accepted"] = Figure(
            admitted + damaged, f"of {len(seeds)} tasks, and of as many with scales"
        )
        found[f"{push.name}_damage"] = Figure(worst, "of the accuracy, or of samples of other classes; with scales")
    return found | ballast_figures() | kink_ladder_figures(range(len(seeds) + 1))


def kink_ladder_figures(seeds: Sequence[int]) -> dict[str, Figure]:
    """How many trainings pass whose checkpoints are nudged to kinks, so that looks excuse 11 bits."""
    steps, (interval, _) = SIZES["mlp"]
    attack = next(attack for attack in ATTACKS if attack.name == "kink-ladder-tf32")
    accepted, shares = 0, list[float]()
    for seed in seeds:
        step = target_tasks.captured("mlp", "sgd", steps, seed + 1)
        findings = mount(attack, target_tasks.target("mlp", "sgd", steps, interval, step))
        shares.append(findings.forgery.damage["segments in lower precision"])
        # Without a first rung the attack is an honest training.
        accepted += findings.passes_tolerance and shares[-1] > 0
    climbed = sum(share > 0 for share in shares)
    return {
        "kink_ladder_accepted": Figure(accepted, f"of {climbed} trainings with a ladder, of {len(seeds)} in all"),
        "kink_ladder_segments": Figure(max(shares), "of the segments in lower precision, at most"),
    }


def ballast_figures() -> dict[str, Figure]:
    """How many attacks pass that train nothing, in a task whose submitter has added ballast: as it is, and weighed."""
    steps, (interval, _) = SIZES["mlp"]
    unit = f"of {2 * len(ballast.ATTACKS)} trainings of nothing, in tasks with a profile"
    return {
        f"{name}_accepted": Figure(
            sum(len(ballast.accepted(steps, interval, weighed, late)) for weighed in (False, True)), unit
        )
        for name, late in (("ballast", False), ("late_ballast", True))
    }


def _draws_of_many(detection: float) -> int:
    """Draws that find a cheat in every segment as surely as `SURE`, if so many of them are rejected when drawn."""
    return 1 if detection == 1.0 else math.ceil(math.log(1 - SURE) / math.log(1 - detection))


def document(measured: Measured, page: str) -> str:
    """The text of docs/attacks.md: each of its tables anew, in the words that people have written about them."""
    lines = page.split("\n")
    for head, *rows in (table(measured) for table in (_figures, _attacks, _damages, _hiding, _honest)):
        first = lines.index(head) + 2  # behind the line that makes it a table
        lines[first : lines.index("", first)] = rows
    return "\n".join(lines)


def _figures(measured: Measured) -> list[str]:
    found = figures(measured)
    return ["| figure | value |", *(f"| {name} | {figure.value:.4g} {figure.unit} |" for name, figure in found.items())]


def _attacks(measured: Measured) -> list[str]:
    return [
        "| attack | source | what it does | cost | cheated | drawn | 5 % | + screen | 99 % | / limit | / honest |"
        " tolerance | exact |",
        *(f"| {a.name} | {a.source} | {a.what} | {' | '.join(_cells(measured, a.name))} |" for a in ATTACKS),
    ]


def _cells(measured: Measured, name: str) -> list[str]:
    rows = {key: part["attacks"][name] for key, part in measured.items() if name in part["attacks"]}
    shares = [row for row in rows.values() if row["segments"] == SEGMENTS]
    everywhere = list(rows.values())
    cost = min(row["cost"] for row in shares)
    if any(row["refused"] for row in everywhere):
        return [_percent(cost), "", "", "", "", "0", "", "", "refused", "refused"]
    worst = max(shares, key=lambda row: math.inf if row["draws"] is None else row["draws"])
    draws = "never" if worst["draws"] is None else f"{worst['draws']} ({_percent(worst['draws'] / worst['segments'])})"
    return [
        _percent(cost),
        f"{min(row['cheated'] for row in shares)} of {shares[0]['segments']}",
        _drawn(everywhere),
        _percent(min(row["caught"] for row in shares)),
        _percent(min(row["caught_screened"] for row in shares)),
        draws,
        _times(_least(row["of_limit"] for row in everywhere)),
        _times(_least(row["of_honest"] for row in everywhere)),
        "**passes**" if any(row["passes_tolerance"] for row in everywhere) else "rejected",
        "**passes**" if any(row["passes_exact"] for row in everywhere) else "rejected",
    ]


def _damages(measured: Measured) -> list[str]:
    """What the cheating brings about."""
    lines = ["| attack | target | measured |"]
    for name in ("grinding", "zhang-1", "zhang-2", "truncated-hash"):
        for key, part in measured.items():
            if name in part["attacks"] and part["attacks"][name]["segments"] == SEGMENTS:
                damage = part["attacks"][name]["damage"].items()
                lines.append(f"| {name} | {key} | {'; '.join(f'{what} {value:.3g}' for what, value in damage)} |")
    return lines


def _honest(measured: Measured) -> list[str]:
    """Greatest relative distances of honest runs."""
    ways = list(honest_reruns.WAYS)
    lines = [f"| target | limit | {' | '.join(ways)} |"]
    for key, part in measured.items():
        cells = [_three(part["honest"][way]) for way in ways]
        lines.append(f"| {key} | {_three(part['limits'])} | {' | '.join(cells)} |")
    return lines


def _hiding(measured: Measured) -> list[str]:
    """What hides in the tolerance, by target: what each rule says, and the damage."""
    lines = ["| attack | target | cost | beyond | rejected | marked | drift | found by | damage |"]
    for name in [attack.name for attack in HIDING]:
        for key, part in measured.items():
            row = part["attacks"].get(name)
            if row is None or row["segments"] != SEGMENTS or "marked" not in row:
                continue
            drift = max((score / limit for score, limit in row["drift"].values()), default=0.0)
            cells = [
                name,
                key,
                _percent(row["cost"]),
                *(f"{row[count]}" for count in ("rejected_alone", "rejected", "marked")),
                f"{drift:.2g}",
                "**passes**" if row["passes_tolerance"] else ", ".join(row["found_by"]) or "its segments",
                "; ".join(f"{what} {value:.3g}" for what, value in row["damage"].items()),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _least(values: Any) -> float | None:
    found = [value for value in values if value is not None]
    return min(found) if found else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _drawn(rows: Sequence[Row]) -> str:
    detection, alone = (_least(row[name] for row in rows) for name in ("detection", "detection_alone"))
    mark = "" if all(row["looks"] for row in rows) else " *"
    return _percent(detection) + ("" if detection == alone else f" ({_percent(alone)})") + mark


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.3g} %"


def _times(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.2g}" if value < 100 else f"{value:,.0f}"


def _three(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1e}" if value else "0" for value in values)


if __name__ == "__main__":
    docs = Path("docs")
    found = measure()
    (docs / "attacks.json").write_text(json_rows(found))
    page = docs / "attacks.md"
    page.write_text(document(json.loads((docs / "attacks.json").read_text()), page.read_text()))
