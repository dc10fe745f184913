"""Native reruns: the distance of torch's own kernels from canonical execution, compared with a profile's thresholds.

A profile covers other orders of summation. Native reruns cover the other differences between machines: kernels,
libraries, fused operations. They claim nothing: each machine gives another document, and none of it goes to a chain.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pol.arithmetic.primitives import Words
from pol.claims.distance import component_distances
from pol.claims.segment_claim import Three
from pol.commitments import canonical_json
from pol.errors import OperationalError
from pol.execution.executor import ExecutorFactory
from pol.graph.step_program import Component
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_claim import ratio
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.torch_job import CONSTANTS, GRAPH, JOB, end_name, pack, start_name, unpack
from pol.verification.profile.torch_setting import NativeSetting
from pol.verification.replay.canonical_replay import replay_end

KIND = "pol/native-reruns"
VERSION = 1
WORKER = "pol.verification.profile.torch_worker"


@dataclass(frozen=True)
class NativeRerun:
    """One portion in one setting: the distance from its canonical end, and the process that executed it."""

    setting: NativeSetting
    portion: int
    distances: Three
    ratios: tuple[int | None, int | None, int | None]
    environment: dict[str, str]


@dataclass(frozen=True)
class NativeReruns:
    """The document; ``failed`` names settings that torch couldn't execute here, and why."""

    profile: Profile
    reruns: tuple[NativeRerun, ...]
    failed: tuple[tuple[NativeSetting, str], ...]

    @property
    def warnings(self) -> list[str]:
        """For each setting in which honest training would be rejected, what to do; a yardstick is no such setting."""
        return [
            warning
            for setting in dict.fromkeys(rerun.setting for rerun in self.reruns if not rerun.setting.is_yardstick)
            for component in Component
            if (warning := self._warning(setting, component)) is not None
        ]

    def worst(self, setting: NativeSetting, component: Component) -> int | None:
        """The greatest ratio over all portions; None if one has none."""
        ratios = [rerun.ratios[component - 1] for rerun in self.reruns if rerun.setting == setting]
        known = [found for found in ratios if found is not None]
        return max(known) if known and len(known) == len(ratios) else None

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(
            {
                "kind": KIND,
                "version": VERSION,
                "task": self.profile.task,
                "profile": self.profile.digest.hex(),
                "thresholds": [str(threshold) for threshold in self.profile.thresholds],
                "reruns": [
                    {
                        "setting": asdict(rerun.setting),
                        "portion": rerun.portion,
                        "distances": [str(distance) for distance in rerun.distances],
                        "ratios": [None if found is None else str(found) for found in rerun.ratios],
                        "environment": rerun.environment,
                    }
                    for rerun in self.reruns
                ],
                "failed": [{"setting": asdict(setting), "reason": reason} for setting, reason in self.failed],
                "warnings": self.warnings,
            }
        )

    def _warning(self, setting: NativeSetting, component: Component) -> str | None:
        found = self.worst(setting, component)
        threshold, spread = self.profile.thresholds[component - 1], self.profile.spreads[component - 1]
        if found is not None and found <= threshold:
            return None
        what = f"honest training with {setting.name} would be rejected: its {component.name.lower()} state "
        if found is None:
            return what + "has no distance from the canonical one (not finite, or integers differ); no margin helps"
        if threshold == 0:
            return what + "isn't the canonical one bit for bit, as exact mode asks; train with canonical kernels"
        needed = math.isqrt(max(0, found - 1) // spread) + 1 if spread else None
        advice = f"a margin of {needed} would do" if needed else "no reordering moves it at all, so no margin helps"
        times = math.sqrt(found / threshold)
        return what + f"parts {times:.2g} times as far as the threshold allows; {advice}, or a shorter interval"


def rerun_natively(
    task: LoadedTask,
    executor: ExecutorFactory,
    profile: Profile,
    settings: Sequence[NativeSetting],
    on_rerun: Callable[[NativeRerun], None] | None = None,
) -> NativeReruns:
    """Execute the profiled portions with torch, in one process for each environment that ``settings`` need.

    Each portion starts from its canonical state, as a verifier's replay does; files lie in a temporary folder.
    """
    reruns: list[NativeRerun] = []
    failed: list[tuple[NativeSetting, str]] = []
    try:
        with tempfile.TemporaryDirectory(prefix="pol-native-") as name:
            folder = Path(name)
            _write_task(folder, task, executor, len(profile.claim.portions))
            for answer in _answers(folder, task, profile, settings):
                if isinstance(answer, NativeRerun):
                    reruns.append(answer)
                    if on_rerun is not None:
                        on_rerun(answer)
                else:
                    failed.append(answer)
    except OSError as error:
        raise OperationalError(f"can't run torch in processes of their own: {error}") from error
    return NativeReruns(profile, tuple(reruns), tuple(failed))


def _write_task(folder: Path, task: LoadedTask, executor: ExecutorFactory, portions: int) -> None:
    (folder / GRAPH).write_bytes(canonical_json.encode(task.aten.to_dict()))
    (folder / CONSTANTS).write_bytes(pack(list(task.program.constants), task.constants))
    canonical = executor(task.program, task.constants)
    state, interval = task.initial_state, task.document.interval
    for portion in range(portions + 1):
        (folder / start_name(portion)).write_bytes(pack(task.slot_types, state))
        if portion < portions:
            state = replay_end(task.program, canonical, state, portion * interval, interval)


def _answers(
    folder: Path, task: LoadedTask, profile: Profile, settings: Sequence[NativeSetting]
) -> Iterator[NativeRerun | tuple[NativeSetting, str]]:
    interval = task.document.interval
    portions = [(portion * interval, interval) for portion in range(len(profile.claim.portions))]
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for number, setting in enumerate(settings):
        groups.setdefault(tuple(setting.environment.items()), []).append(number)
    for environment, numbers in groups.items():
        job = {"portions": portions, "settings": [(number, asdict(settings[number])) for number in numbers]}
        (folder / JOB).write_text(json.dumps(job))
        done: dict[int, int] = dict.fromkeys(numbers, 0)
        for line in _run(folder, dict(environment)):
            number = line["setting"]
            if "failed" in line:
                done[number] = len(portions)
                yield settings[number], line["failed"]
            elif "ended" in line:
                # The process is gone, with all settings that it hadn't finished.
                yield from ((settings[n], line["ended"]) for n in numbers if done[n] < len(portions))
            else:
                done[number] += 1
                end = folder / end_name(number, line["portion"])
                words = unpack(end.read_bytes(), task.slot_types)
                end.unlink()
                yield _measured(folder, task, profile, settings[number], line, words)


def _run(folder: Path, environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", WORKER, str(folder)]
    log = folder / "errors.txt"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for text in process.stdout:
                yield json.loads(text)
        except BaseException:
            # A caller that stops reading, by an interrupt for example, leaves no process behind.
            process.kill()
            raise
    if process.returncode:
        last = log.read_text().strip().splitlines()[-1:] or ["no message"]
        yield {"setting": -1, "ended": f"the process ended with {process.returncode}: {last[0]}"}


def _measured(
    folder: Path, task: LoadedTask, profile: Profile, setting: NativeSetting, line: dict[str, Any], words: list[Words]
) -> NativeRerun:
    portion = line["portion"]
    end = unpack((folder / start_name(portion + 1)).read_bytes(), task.slot_types)
    distances = component_distances(task.program, end, words)
    references = profile.claim.portions[portion].references
    parameter, buffer, optimizer = (ratio(d, r) for d, r in zip(distances, references, strict=True))
    return NativeRerun(setting, portion, distances, (parameter, buffer, optimizer), line["environment"])
