"""``pol fetch``: the trained weights of a task as a file that ``model.load_state_dict`` takes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pol.cli.examples import defaulted, example
from pol.cli.file_output import FINE, json_option
from pol.cli.local_market.market_folder_option import place_options
from pol.errors import OperationalError

if TYPE_CHECKING:
    from pol.submission.market_place import MarketPlace


@click.command(epilog=example("pol fetch", "pol fetch 1a2b3c4d --out weights.safetensors"))
@click.argument("task", default="")
@defaulted("--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("weights.safetensors"))
@place_options
@click.option("--wait", is_flag=True, help="Until the task is settled.")
@click.option("--unsettled", is_flag=True, help="Also weights that nobody has verified, of a task that isn't settled.")
@json_option
def fetch(task: str, out: Path, place: MarketPlace, wait: bool, unsettled: bool, as_json: bool) -> int:
    """Write the trained weights of a task, by the names that the model gave them.

    TASK is eight digits of its id or more; without it, your last one. The task, the learning proof and the last state
    are checked against what the chain says before anything is written. The file is for
    model.load_state_dict(safetensors.torch.load_file(...)).
    """
    from pol.submission.submission import Submission
    from pol.training.state.tensors import of_tensor
    from pol.training.storage.safetensors_format import pieces

    found = Submission.of(task, place)
    if wait:
        found.wait()
    weights = found.weights(unsettled)
    draft = out.with_name(out.name + ".draft")
    try:
        with draft.open("wb") as file:
            file.writelines(pieces({name: of_tensor(tensor, name) for name, tensor in weights.items()}))
        os.replace(draft, out)
    except OSError as error:
        raise OperationalError(f"can't write {out}: {error.strerror or error}") from error
    if as_json:
        print(
            json.dumps({"task": found.id, "file": str(out), "tensors": {n: list(t.shape) for n, t in weights.items()}})
        )
    else:
        numbers = sum(tensor.numel() for tensor in weights.values())
        print(f"{out}: {len(weights)} tensors, {numbers:,} numbers, with the root that is on chain")
    return FINE
