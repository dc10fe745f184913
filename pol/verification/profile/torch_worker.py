"""The process in which torch executes portions in given settings.

``python -m pol.verification.profile.torch_worker FOLDER`` starts it.

It is a process of its own because some settings are read when it starts, and because torch may end it: an instruction
that the processor lacks is fatal. The folder holds files of the parent process only; see `native_reruns`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pol.execution.stock_torch.torch_executor import DTYPES, NativeExecutor, to_module
from pol.graph.aten_graph import AtenGraph, AtenInput
from pol.training.task.task_training import environment, to_tensor, to_words
from pol.verification.profile.torch_job import CONSTANTS, GRAPH, JOB, end_name, pack, start_name, unpack
from pol.verification.profile.torch_setting import NativeSetting

Step = Callable[[list[Tensor], list[Tensor], int], list[Tensor]]


def main(folder: Path) -> None:
    """Run the job in a folder; one line of JSON for each portion in each setting, or for a setting that failed."""
    job = json.loads((folder / JOB).read_text())
    graph = AtenGraph.from_dict(json.loads((folder / GRAPH).read_text()))
    constants = _tensors(graph.constants, folder / CONSTANTS)
    for number, given in job["settings"]:
        setting = NativeSetting(**given)
        try:
            step = prepare(graph, setting)
            for portion, (first, steps) in enumerate(job["portions"]):
                state = _tensors(graph.slots, folder / start_name(portion))
                with torch.backends.mkldnn.flags(enabled=setting.onednn):
                    end = _portion(graph, step, setting, state, constants, first, steps)
                (folder / end_name(number, portion)).write_bytes(end)
                _say({"setting": number, "portion": portion, "environment": environment()})
        except Exception as error:  # noqa: BLE001  # a setting that torch refuses is a result
            _say({"setting": number, "failed": f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"})


def prepare(graph: AtenGraph, setting: NativeSetting) -> Step:
    """One step in a setting, whose thread count becomes that of this process."""
    torch.set_num_threads(setting.threads)
    if not setting.compiled and not setting.is_yardstick:
        executor = NativeExecutor(graph, setting.device)
        return lambda state, constants, number: executor.run(state, constants, number)[0]
    module: Callable[..., Sequence[Tensor]] = to_module(graph, setting.device, getattr(torch, setting.precision))
    if setting.compiled:
        module = torch.compile(module)

    def step(state: list[Tensor], constants: list[Tensor], number: int) -> list[Tensor]:
        with torch.no_grad():
            # Copies, as two slots may show one tensor.
            given = [*state, *constants, torch.tensor(number, device=setting.device)]
            return [tensor.clone() for tensor in module(*given)[: len(graph.slots)]]

    return step


def _portion(
    graph: AtenGraph,
    step: Step,
    setting: NativeSetting,
    state: list[Tensor],
    constants: list[Tensor],
    first: int,
    steps: int,
) -> bytes:
    real = getattr(torch, setting.precision)

    def given(tensors: list[Tensor]) -> list[Tensor]:
        return [t.to(setting.device, real if t.dtype == torch.float32 else t.dtype) for t in tensors]

    state, fixed = given(state), given(constants)
    for number in range(first, first + steps):
        state = step(state, fixed, number)
    words = [
        to_words(entry.type, tensor.to("cpu", DTYPES[entry.type.dtype]))
        for entry, tensor in zip(graph.slots, state, strict=True)
    ]
    return pack([entry.type.words for entry in graph.slots], words)


def _tensors(entries: Sequence[AtenInput], file: Path) -> list[Tensor]:
    words = unpack(file.read_bytes(), [entry.type.words for entry in entries])
    return [to_tensor(entry.type, item) for entry, item in zip(entries, words, strict=True)]


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
