"""A profile for people: distributions as a table, and a picture of reruns against the thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from rich.table import Table

from pol.claims.acceptance_rule import relative_limit
from pol.graph.step_program import Component
from pol.verification.profile.order_statistics import maximum_share, rank_for, samples_for
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.slot_noise import limits
from pol.verification.profile.torch_reruns import NativeReruns

CONFIDENCE = Fraction(95, 100)
SHARES = (Fraction(95, 100), Fraction(99, 100))
LOOSEST = 3
"""Tensors that are shown with their limits."""
WIDTH = 64
"""Columns of the picture, over relative distances from 10^-8 to 1."""
DECADES = 8
METRICS = ("relative_l1", "relative_l2", "relative_linf", "cosine")
TITLES = {"relative_l1": "L1", "relative_l2": "L2", "relative_linf": "Linf", "cosine": "cosine"}


def distributions(profile: Profile) -> Table:
    """For each component and metric: least, median and greatest over all reruns, and a bound for half of all seeds."""
    table = Table("component", "metric", "least", "median", "greatest", "half of all seeds stay below")
    for component in measured(profile):
        for metric in METRICS:
            values = values_of(profile, component, metric)
            ordered = sorted(values)
            cells = (ordered[0], ordered[len(ordered) // 2], ordered[-1])
            table.add_row(component.name.lower(), TITLES[metric], *(f"{v:.2e}" for v in cells), _half(profile, values))
    return table


def thresholds(profile: Profile, native: NativeReruns | None) -> Table:
    """L2 against the threshold, on a logarithmic axis: o one rerun, O more, n torch itself, T the threshold."""
    columns = [f"1e-{DECADES}".ljust(WIDTH - 1) + "1", "greatest", "threshold"]
    table = Table("component", columns[0], *columns[1:])
    for component in measured(profile):
        reruns = values_of(profile, component, "relative_l2")
        others = native_ratios(native, component) if native is not None else []
        limits = relative_limit(profile.thresholds[component - 1])
        table.add_row(component.name.lower(), picture(reruns, others, limits), f"{max(reruns):.2e}", f"{limits:.2e}")
    return table


def settings(native: NativeReruns) -> Table:
    """The greatest L2 of each setting, and how it compares with the threshold: above 1, honest work is rejected."""
    profile = native.profile
    components = measured(profile)
    table = Table("torch", *(f"{component.name.lower()}: greatest, of the threshold" for component in components))
    for setting in dict.fromkeys(rerun.setting for rerun in native.reruns):
        cells = []
        for component in components:
            found, threshold = native.worst(setting, component), profile.thresholds[component - 1]
            cells.append(
                "none" if found is None else f"{relative_limit(found):.2e}, {math.sqrt(found / threshold):.2g}"
            )
        table.add_row(setting.name, *cells)
    return table


def loosest(profile: Profile) -> Table:
    """The trained tensors that the thresholds bound least: how far a solver could go in each alone."""
    found = limits(profile.slots, profile.thresholds, [portion.references for portion in profile.claim.portions])
    rows = [(limit / slot.way, slot) for slot, limit in zip(profile.slots, found, strict=True) if slot.trained]
    table = Table("tensor", "scale", "limit, of its way")
    for ratio, slot in sorted(rows, key=lambda row: -row[0])[:LOOSEST]:
        table.add_row(slot.name, str(slot.scale), f"{ratio:.2e}")
    return table


def promises(profile: Profile) -> str:
    """The coverage of so few reruns, and the number of reruns that common shares need."""
    count, segments = profile.claim.rerun_count, len(profile.claim.portions)
    share = maximum_share(count, CONFIDENCE)
    needed = " and ".join(f"{samples_for(p, CONFIDENCE)} for {float(p):.0%}" for p in SHARES)
    return (
        f"{count} reruns of each of {segments} segments. A rerun with a fresh seed stays within the greatest distances "
        f"with probability >= {profile.coverage}; they cover {share:.1%} of all seeds with {float(CONFIDENCE):.0%} "
        f"confidence (reruns needed: {needed}). Later segments and other hardware are for the margin of "
        f"{profile.claim.margin}."
    )


def measured(profile: Profile) -> list[Component]:
    """The components that have numbers."""
    return [component for component in Component if profile.metrics(component, 0) is not None]


def values_of(profile: Profile, component: Component, metric: str) -> list[float]:
    """A metric of every rerun, by index; undefined (nothing moves) counts as 0 where nothing differs."""
    found = [profile.metrics(component, index) for index in range(len(profile.claim.reruns))]
    values = [float(getattr(metrics, metric)) for metrics in found if metrics is not None]
    return [0.0 if math.isnan(value) else value for value in values]


def native_ratios(native: NativeReruns, component: Component) -> list[float]:
    """Relative distances of all native reruns that have one, without the yardstick."""
    rows = (rerun for rerun in native.reruns if not rerun.setting.is_yardstick)
    return [relative_limit(found) for rerun in rows if (found := rerun.ratios[component - 1]) is not None]


def picture(reruns: Sequence[float], native: Iterable[float], threshold: float) -> str:
    """One line of `WIDTH` characters."""
    line = ["."] * WIDTH
    for value in native:
        line[place(value)] = "n"
    counts = [0] * WIDTH
    for value in reruns:
        counts[place(value)] += 1
    line = [("O" if count > 1 else "o") if count else char for count, char in zip(counts, line, strict=True)]
    line[place(threshold)] = "T"
    return "".join(line)


def place(value: float) -> int:
    """The column of a relative distance; values beyond the axis stand at its ends."""
    if value <= 0:
        return 0
    return min(WIDTH - 1, max(0, round((math.log10(value) / DECADES + 1) * (WIDTH - 1))))


def _half(profile: Profile, values: Sequence[float]) -> str:
    """The bound from the greatest value of each seed over the segments; seeds are what is drawn independently."""
    count = profile.claim.rerun_count
    rank = rank_for(count, Fraction(1, 2), CONFIDENCE)
    if rank is None:
        return "- (too few reruns)"
    worst = sorted(max(values[seed::count]) for seed in range(count))
    return f"{worst[rank - 1]:.2e} ({float(CONFIDENCE):.0%} sure)"
