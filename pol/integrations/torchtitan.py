"""The recorder in torchtitan's Trainer, in place of its checkpoints.

trainer = Trainer(config)
recording = TitanRecording(trainer, "runs/first", every=100)
trainer.train()  # goes on from the newest checkpoint in the store
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pol.errors import UnsupportedError
from pol.integrations.distributed import DistributedRecorder
from pol.training.storage.store import Store

try:
    from torchdata.stateful_dataloader import StatefulDataLoader
except ImportError as error:
    raise UnsupportedError("torchtitan's loaders need torchdata: pip install torchdata") from error


class TitanRecording:
    """A checkpointer for torchtitan's loop that records every so many steps, and restores before the first one.

    It takes the place of ``trainer.checkpointer``: load, save and close are called by the loop. The trainer's own
    checkpoints are still written if its configuration enables them, and never read. Recorded are the model, optimizer,
    schedule, loader, step, tokens and random generators of every process.

    parts, per_process, options: those of `DistributedRecorder`.

    Raises:
        UnsupportedError: pipeline parallelism, or a loader that isn't torchdata's.
    """

    def __init__(
        self,
        trainer: Any,
        store: Store | str,
        *,
        every: int = 100,
        parts: Mapping[str, Any] | None = None,
        per_process: Collection[str] = (),
        **options: Any,
    ):
        if len(trainer.model_parts) != 1 or trainer.parallel_dims.pp_enabled:
            raise UnsupportedError(
                "with pipeline parallelism each process holds other modules: set pipeline_parallel_degree = 1 or "
                "record each stage with a DistributedRecorder over the processes that share it, group="
            )
        if not isinstance(trainer.dataloader, StatefulDataLoader):
            raise UnsupportedError("the trainer's loader keeps no place: build one of torchdata's StatefulDataLoader")
        self._own, self._generate = trainer.checkpointer, trainer.batch_generator
        self._place = _LoaderPlace(trainer.dataloader)
        given = {"train": trainer, "loader": self._place, **(parts or {})}
        self.recorder = DistributedRecorder(
            store,
            trainer.model_parts[0],
            trainer.optimizers.optimizers[0],
            every=every,
            scheduler=trainer.lr_schedulers,
            parts=given,
            per_process={"train", "loader", *per_process},
            **options,
        )
        trainer.checkpointer, trainer.batch_generator = self, self._batches

    def load(self, step: int = -1) -> bool:
        """Restore the newest checkpoint in the store, or record the start; whether there was one.

        Raises:
            ProtocolError, OperationalError: as `DistributedRecorder.resume`.
        """
        self.recorder.resume()
        return self.recorder.steps > 0

    def save(self, curr_step: int, last_step: bool = False) -> None:
        """End a step; records a checkpoint if one is due, and the last one."""
        self.recorder.step()
        if last_step:
            self.recorder.close()
        self._own.save(curr_step, last_step=last_step)

    def maybe_wait_for_staging(self) -> None:
        """Wait for the trainer's own checkpoint; the record's is complete when `save` returns."""
        self._own.maybe_wait_for_staging()

    def close(self) -> None:
        """Close the trainer's own checkpoints."""
        self._own.close()

    def _batches(self, loader: Any) -> Iterator[Any]:
        """`Trainer.batch_generator` over recorded batches."""
        found: Iterator[Any] = self._generate(self.recorder.batches(loader, place=self._place))
        return found


class _LoaderPlace:
    """The loader's state as plain values: torchtitan's own method pickles it, and nothing here is unpickled."""

    def __init__(self, loader: Any):
        self._loader = loader

    def state_dict(self) -> dict[str, Any]:
        """The place in the data."""
        found: dict[str, Any] = StatefulDataLoader.state_dict(self._loader)
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go there when the next batch is drawn."""
        StatefulDataLoader.load_state_dict(self._loader, state)
