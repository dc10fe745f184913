"""A task with two exact trainings, an honest one and one that leaves a step out, and jobs about their segments."""

from dataclasses import dataclass
from pathlib import Path

import small_task
from pol.claims.acceptance_rule import EXACT
from pol.demo.cheating_parties import SkippingExecutor
from pol.training.storage.store import Store
from pol.training.task import learning_proof
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task_document import LoadedTask
from pol.verification.engines.engine import ReplayJob

FALSE = 7
"""The segment of the dishonest training that its replay contradicts."""


@dataclass(frozen=True)
class ExactCase:
    """The store, the task and both proofs."""

    store: Store
    task: LoadedTask
    honest: str
    dishonest: str

    def jobs(self, digest: str, *segments: int) -> list[ReplayJob]:
        """Jobs about segments of a proof, in exact mode."""
        proof: LearningProof = learning_proof.load(self.store, digest, self.task)
        return [
            ReplayJob(self.store.url, self.task.digest, proof.checkpoints[s], proof.checkpoints[s + 1], EXACT)
            for s in segments
        ]


def exact_case(folder: Path) -> ExactCase:
    """The case in a store in ``folder``."""
    store, task = small_task.published(folder)
    canonical = small_task.Canonical(task)
    skipping = SkippingExecutor(canonical, frozenset({FALSE * small_task.INTERVAL + 1}))
    return ExactCase(
        store, task, small_task.solve_with(store, task, canonical), small_task.solve_with(store, task, skipping)
    )
