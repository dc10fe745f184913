"""How many intervals of honest trainings are rejected, over all kinds, environments, networks and optimizers.

`PYTHONPATH=tests python -m lab.benchmarks.false_rejects NETWORK OPTIMIZER FIRST LAST` measures one network and
optimizer, with the seeds FIRST to LAST.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

from lab.benchmarks.classifier import SMALL
from lab.benchmarks.figure import Figure, measured_apart
from lab.benchmarks.honest_runs import ENVIRONMENTS, STEPS, Tally, Tasks, publish_task
from pol.training.storage.store import Store

SEEDS = range(6, 11)
"""Data orders and initial models. The second look was chosen on 1 to 5 (docs/adr/0021), which no bound may rest on."""
FIGURED = (*product(("relu", "gelu", "batchnorm", "groupnorm", "attention", "keybias"), ("sgd", "adamw")),)
"""Networks and optimizers that the bound is over. Attention with AdamW has scales (docs/adr/0039)."""
STILL_STEPS = 2_464
"""Of a training that stands still: 22 epochs, of which the last `STEPS` steps are looked at; 15 fit all of the data."""
_PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that have nothing to do sleep: two of them would only hinder each other in a model this small."""


def honest_figures(seeds: Sequence[int] = SEEDS) -> dict[str, Figure]:
    """False rejects over all kinds: of all networks, by network, and by network and optimizer.

    A training that stands still is shown apart, as ``still_``: with GELU, so that nothing but standing still counts.
    """
    figures: dict[str, Figure] = {}
    totals = {name: Tally() for name in ("", *(f"{network}_" for network in SMALL))}
    for network, optimizer in FIGURED:
        tally = over_all_environments(network, optimizer, seeds)
        totals[""].merge(tally)
        totals[f"{network}_"].merge(tally)
        figures |= tally_figures(f"{network}_{optimizer}_", tally)
    totals["still_"] = over_all_environments("gelu", "still", seeds)
    for prefix, tally in totals.items():
        figures |= tally_figures(prefix, tally)
    return figures


def over_all_environments(network: str, optimizer: str, seeds: Sequence[int]) -> Tally:
    """One network and optimizer, with these seeds; every environment is a process of its own."""
    steps = STILL_STEPS if optimizer == "still" else STEPS
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        store = Store(f"file://{folder}")
        tasks = {seed: publish_task(store, SMALL[network], optimizer, seed, steps) for seed in seeds}
        for found in pool.map(partial(_run_apart, store.url, network, optimizer, tasks), range(len(ENVIRONMENTS))):
            tally.merge(found)
    return tally


def tally_figures(prefix: str, tally: Tally) -> dict[str, Figure]:
    """What was counted, and the bound on the rate of false rejects."""
    return {
        f"{prefix}false_reject_upper_bound": Figure(tally.upper_bound, "of honest intervals, at 95 %"),
        f"{prefix}honest_intervals": Figure(tally.tested, "intervals"),
        f"{prefix}honest_beyond": Figure(tally.beyond, "intervals beyond the thresholds"),
        f"{prefix}honest_rejected": Figure(tally.rejected, "intervals, after a second look"),
        f"{prefix}honest_closest": Figure(tally.closest, "of the threshold"),
        f"{prefix}honest_apart": Figure(tally.apart, "intervals marked for a slot"),
        f"{prefix}honest_pairs": Figure(tally.pairs, "pairs of intervals"),
        f"{prefix}honest_pairs_rejected": Figure(tally.pairs_rejected, "pairs, after a second look"),
        f"{prefix}honest_closest_look": Figure(tally.closest_look, "of what the second look allows"),
    }


def _run_apart(url: str, network: str, optimizer: str, tasks: Tasks, place: int) -> Tally:
    variables, kinds = ENVIRONMENTS[place]
    arguments = [url, network, optimizer, json.dumps(tasks), *kinds]
    printed = measured_apart("lab.benchmarks.honest_runs", *arguments, variables={**_PASSIVE, **variables})
    return Tally(**json.loads(printed.splitlines()[-1]))


if __name__ == "__main__":
    _network, _optimizer, _first, _last = sys.argv[1:]
    _tally = over_all_environments(_network, _optimizer, range(int(_first), int(_last) + 1))
    _figures = tally_figures(f"{_network}_{_optimizer}_", _tally)
    print(json.dumps({name: figure.to_dict() for name, figure in _figures.items()}, indent=2))
