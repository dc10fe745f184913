"""The attack battery against every model, optimizer and segment length.

`PYTHONPATH=tests python -m lab.benchmarks.attack_battery` writes docs/attacks.json and, from it, docs/attacks.md.
"""

from __future__ import annotations

import json
import math
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from lab.attacks import ballast, honest_reruns, noisy_slots, scaled_slots, target_tasks
from lab.attacks.attack_target import Target
from lab.attacks.battery import ATTACKS
from lab.attacks.forgery import Attack
from lab.attacks.stolen_work import SAME_TASK
from lab.attacks.verification_outcome import Findings, limits, mount
from lab.benchmarks.figure import Figure
from pol.verification.examination.screening import ranked, suspicions

SIZES: Mapping[str, tuple[int, tuple[int, int]]] = {"mlp": (400, (10, 100)), "cnn": (200, (5, 50))}
"""Steps of the training of each model, and of its segments: of the shorter ones there are 40, so that 5 % are two."""
KINKED = (("wide", "sgd"), ("wide", "adamw"), ("tuned", "adamw"))
"""Further targets for what hides in the tolerance: with a kink near in every batch, and with dead units."""
HIDING = "tolerance"
"""The family of attacks that are run against them."""
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
        hiding = [attack.name for attack in attacks if attack.family == HIDING]
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
    for push in scaled_slots.PUSHES:
        build, interval = push.build, push.interval
        admitted, damaged, worst = 0, 0, 0.0
        for seed in seeds:
            admitted += noisy_slots.is_admitted(build, interval, seed)
            task, profile = scaled_slots.scaled(build, interval, seed)
            state, rejected = scaled_slots.pushed(task, profile.thresholds, push)
            harm = max(scaled_slots.damage(task, build, state))
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


def document(measured: Measured) -> str:
    """The text of docs/attacks.md."""
    return "\n".join([*_head(measured), *_table(measured), *_tail(measured)]) + "\n"


def _head(measured: Measured) -> list[str]:
    found = figures(measured)
    return [
        "# Attacks",
        "",
        "Written by `PYTHONPATH=tests python -m lab.benchmarks.attack_battery` from what it measured",
        "([attacks.json](attacks.json)); do not edit. `pol bench attacks --json` measures again.",
        "",
        "Each attack publishes a learning proof that is loaded and verified as any other. Targets: a perceptron and a",
        "convolutional network with batch normalisation on the digits, with SGD and with AdamW, in segments of 10 and",
        "100, or of 5 and 50 steps. Of a row the worst of these targets counts; shares of segments are those of 40",
        "segments. The cheating solver trains canonically where it trains: none of the tolerance is used up by honest",
        "rounding.",
        "",
        "| figure | value |",
        "| --- | --- |",
        *(f"| {name} | {figure.value:.4g} {figure.unit} |" for name, figure in found.items()),
        "",
        "- **cost**: executed steps (or floating-point operations of products) over those of honest training, counted.",
        "  A step in lower precision counts as a step.",
        "- **cheated**: segments that training from their published start doesn't give, known from the bits.",
        "- **drawn**: probability that a cheated segment is rejected if it is drawn; in brackets, where it isn't the",
        "  same, by the thresholds alone (`--looks 0`). *: on some target only by the thresholds alone.",
        "- **5 %**: probability that a random draw of 5 % of the segments (2 of 40) hits a rejected one.",
        "- **+ screen**: the same if one of the two is chosen by",
        "  [screening.py](../pol/verification/examination/screening.py) (`pol verify --suspicious`), which replays "
        "nothing: it",
        "  reads how far and where each segment went. (The loss of a batch would cost a forward pass: 3 % of segments",
        "  of 10.)",
        "- **99 %**: random draws that find it with 99 %, and their share of the training.",
        "- **/ limit**, **/ honest**: smallest distance of a cheated segment over what is allowed there (the",
        "  threshold, or what a second look at that segment excuses: below 1 it may be above the threshold), and over",
        "  the greatest distance of honest runs (eager, captured graph, two threads, without oneDNN, compiled) of the",
        "  same target.",
        "- **tolerance**, **exact**: the outcome if every segment is replayed, by the rules of `pol verify`: drift",
        "  over all counts. Withheld evidence is never accepted (inconclusive); such segments count as rejected.",
        "",
    ]


def _table(measured: Measured) -> list[str]:
    lines = [
        "| attack | source | what it does | cost | cheated | drawn | 5 % | + screen | 99 % | / limit | / honest |"
        " tolerance | exact |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for attack in ATTACKS:
        lines.append(
            f"| {attack.name} | {attack.source} | {attack.what} | {' | '.join(_cells(measured, attack.name))} |"
        )
    return lines


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


def _tail(measured: Measured) -> list[str]:
    shown = (
        "grinding",
        "zhang-1",
        "zhang-2",
        "truncated-hash",
    )
    lines = ["", "## What the cheating brings about", "", "| attack | target | measured |", "| --- | --- | --- |"]
    for name in shown:
        for key, part in measured.items():
            if name in part["attacks"] and part["attacks"][name]["segments"] == SEGMENTS:
                damage = part["attacks"][name]["damage"].items()
                lines.append(f"| {name} | {key} | {'; '.join(f'{what} {value:.3g}' for what, value in damage)} |")
    lines += _hiding(measured)
    lines += ["", "## Honest runs", "", "Greatest relative distance (parameters, buffers, optimizer state).", ""]
    ways = list(honest_reruns.WAYS)
    lines += [f"| target | limit | {' | '.join(ways)} |", f"| --- | --- |{' --- |' * len(ways)}"]
    for key, part in measured.items():
        cells = [_three(part["honest"][way]) for way in ways]
        lines.append(f"| {key} | {_three(part['limits'])} | {' | '.join(cells)} |")
    return [*lines, "", *TEXT.strip().splitlines()]


def _hiding(measured: Measured) -> list[str]:
    """What hides in the tolerance, by target: what each rule says, and the damage."""
    lines = [
        "",
        "## What hides in the tolerance",
        "",
        "Of 40 segments: those beyond the thresholds, those that a second look rejects as well, those that it marks;",
        "the score of drift over its limit, greatest of the components; the rules over several segments that reject",
        "the training ([verdict.md](spec/verdict.md#drift)). Damage is that of the last checkpoint.",
        "",
        "| attack | target | cost | beyond | rejected | marked | drift | found by | damage |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    names = [attack.name for attack in ATTACKS if attack.family == HIDING]
    for name in names:
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


TEXT = """
## What this doesn't say

*Concentrated cheating.* A draw finds one cheated segment of n with probability draws / n: a single jump to a foreign
model (`splice`) takes 99 % of the segments to find with 99 % if nothing but chance chooses. The screen finds jumps
that are longer or go elsewhere than their neighbours; an attacker who knows it keeps to honest lengths and directions
(`extrapolate-10%`), moves only as far as an honest segment does, and pays for all other segments. Verdicts on the
market are about drawn segments only; whoever verifies for themselves may choose more.

*One lie that saves everything.* `collapse` jumps once to a state where every gradient but that of ten numbers vanishes;
all segments behind are true in both modes, and cost a fraction of a percent. Only the segment of the jump is false, so
a draw finds it as rarely as any single segment: stakes have to be that much higher ([game.md](spec/game.md#solver)).
The screen names the segment after which training stands still, and whoever evaluates the model sees that it is worth
nothing; but no contract reads either. A solver that knows the screen may keep numbers moving that are as cheap to
predict (weight decay moves dead weights too): the length of the jump and of what follows is then all that shows it. A
jump to NaN would be a jump into rejection: a number without a distance is rejected in every segment.

*Tolerance.* Within the threshold a solver may publish what it likes. What it injects is bounded: each segment by the
threshold times the way that the segment went, together by the threshold times the sum of these ways (`drift`;
tested). Training carries an injection further, as it carries rounding. These attacks cost 100 % because thresholds are
small: at most a sixty-fourth of the way, and a few hundred-thousandths here. Before there was that cap, a bias in front
of a group normalisation made thresholds of 0.37 to 0.48, and a solver that moved eight numbers within them collapsed
the network with 4 to 6 % of the work, every segment accepted; a bias on the keys of attention let one steer it. Their
tasks have no profile now.

*Drift.* What a solver adds to each segment points in one direction, where rounding points anywhere: `pol verify` adds
the directions up over all segments that it replays ([verdict.md](spec/verdict.md#drift)), and this table counts that
as rejected. The contracts judge segment by segment, so a verdict by tolerance on the market doesn't know it. Whoever
knows the rule stays below it: with noise of its own (`drift-in-noise`), a direction that turns, ten segments alone, or
pushes of another sign that are next to nothing. That leaves six to eight tenths of the injection, which is bounded as
above: no model here loses accuracy or gets a back door by it, unless Adam amplifies (`drift-across`).

*Adam amplifies.* The bound on what is injected doesn't bound what becomes of it. Where a weight has no gradient at
all (a pixel that is blank in every sample, a hidden unit that no sample reaches), Adam divides its average by epsilon
= 1e-8, so that an average of 1e-7, far below every threshold, moves the weight by tenths. `back-door` plants a trigger
by it and is found as drift; with noise (`back-door-in-noise`), or in ten segments (`back-door-few`), it isn't. No input
has to be constant: `dead-unit` makes a detector of a unit that no sample reaches, and `awakening` wakes such units up
in the last segment, at the price of accuracy. What is hidden in a checkpoint acts in the next segment: a pair of
segments that is replayed as one ends elsewhere, and so they are all rejected ([pairs](spec/verdict.md#pairs)). The
contracts judge segment by segment and accept them. A task whose result strangers will rely on, trained with Adam,
should be posted in exact mode. SGD has no such amplifier: rate / (1 - momentum) is
all (`silent-weights`).

*Ballast.* Limits are relative to the way of a whole component. A submitter that adds a parameter with a constant
gradient makes that way as long as it likes; its solver then trains nothing, or publishes another model, for 0 % of the
work. The profile refuses such a task, as it knows the noise and the way of each tensor. Late ballast lies still while
the profile is measured, and gets one. Each replayed segment shows it: its other tensors are off by as much as they
should have moved ([slots](spec/verdict.md#slots)). It isn't part of this table, since its task is made for it
(`ballast_accepted`, `late_ballast_accepted`).

*Batch normalisation behind a bias, with Adam.* The bias has a gradient of nothing but rounding, which Adam scales up
to whole steps. Honest runs then part as far as they travel: `pol profile` refuses to give a threshold. Use
`bias=False`.

*Settling averages.* Running statistics move less and less, so that rounding counts for more in late segments. A
profile of the first two segments of the convolutional network (5 steps each, AdamW) puts the limit of the buffers at
the floor, and an honest run of torch is then rejected in 28 of 40 segments; with four profiled ones in none. The tasks
with buffers here are profiled over half of their segments.

*Kinks.* The convolutional network has GELU. With ReLU, honest runs of it parted by up to 5e-3 (compiled, AdamW), more
than the mildest cheats, which were then told from the canonical run but not from such honest ones: separation 0.3. See
[litepaper.md](litepaper.md), "False rejects". The perceptron has ReLU, and had no such event in these runs. A segment
that has a branch is allowed the length of what its reruns do (a second look,
[ADR 0021](adr/0021-a-second-look.md)), so a mild cheat passes there that is rejected in the segments around it: in one
of 13 segments of 10 steps, and in half of those of 100 steps, where most have a branch. If it points elsewhere than the
reruns, the segment is marked, and several marks reject the training
([verdict.md](spec/verdict.md#second-look)); the contracts know the length alone. A solver can make segments with a
branch itself, by nudging each checkpoint to a kink of the next batch: `kink-ladder-tf32` has a backward pass of 11
bits in nearly every segment, every one within its look, and too many marks. `kink-ladder-13` stays within the eight
thresholds that no span has to explain, and has none; it costs two more steps a segment, by which the solver sees what
a kink will excuse. Where a look is due anyway, a push along honest branches lies in their span (`along-reruns`).

*Precision.* Products with 20 of 24 bits pass the tolerance: they are as exact as another order of summation. TF32 and
bfloat16 don't.

*The same task.* Somebody's proof of this very task, copied, is accepted in both modes: nothing in it is false. A
proof says that the work was done, not by whom. On the market only the solver that won the task can commit a
proof; a submitter who pays twice for one task document gets one training.

*Undoing steps.* A step of SGD with momentum can be undone with one gradient (`retrospective`), at the price of
training it forwards. It never arrives at the committed start: at least one segment is false. Segments that were
undone in full count as trained, not as cheated.

*Exact mode proves the result.* Whoever finds a cheaper way to the same bits isn't cheating.

*By construction.* Order and content of the data, rate and schedule, precision and program are constants of the task;
the start is committed; a draw reads nothing that the solver publishes. Attacks on them are either refused with the
document or are training on something else, which the distance shows.
"""


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
    (docs / "attacks.json").write_text(json.dumps(found, indent=1) + "\n")
    (docs / "attacks.md").write_text(document(json.loads((docs / "attacks.json").read_text())))
