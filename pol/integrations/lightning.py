"""The recorder inside the Trainer of Lightning (`lightning` or `pytorch_lightning`).

recording = LightningRecording("runs/first", every=100)
trainer = Trainer(callbacks=[recording], ...)
trainer.fit(module, recording.batches(loader), ckpt_path=recording.resume())
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, SequentialSampler

from pol.errors import ProtocolError, UnsupportedError
from pol.integrations.distributed import recorder_of_processes
from pol.integrations.exchanged_state import RANKS
from pol.training.record import newest_checkpoint
from pol.training.recorder.doctor_control import store_of
from pol.training.recorder.recorder import Recorder
from pol.training.state.trainer_state import module_state
from pol.training.storage.store import Store

try:
    from lightning.pytorch import Callback, LightningModule, Trainer, __version__
    from lightning.pytorch.strategies import DDPStrategy
    from lightning.pytorch.trainer.states import RunningStage
except ImportError:
    from pytorch_lightning import Callback, LightningModule, Trainer, __version__
    from pytorch_lightning.strategies import DDPStrategy
    from pytorch_lightning.trainer.states import RunningStage


class LightningRecording(Callback):  # type: ignore[misc]  # lightning declares no types to mypy here
    """Records the complete state of a Lightning training every so many optimizer steps, and resumes it bit by bit.

    A state is recorded and restored between two batches, after validation and before the next batch is drawn, so the
    batches of the training have to come through `batches`. Every optimizer step counts once, and so does a batch in
    which several optimizers step.

    parts, options: those of `Recorder`, without model, optimizer, scheduler and scaler, which are the trainer's. On
    several processes (strategy ``ddp``) those of `DistributedRecorder`.
    """

    def __init__(self, store: Store | str, *, every: int = 100, parts: Mapping[str, Any] | None = None, **options: Any):
        self.store = store_of(store, 0)
        self.recorder: Recorder | None = None
        self._every = every
        self._parts, self._options = parts or {}, options
        self._trainer: Any = None
        self._global_step = 0

    def batches(self, loader: Any) -> RecordedBatches:
        """The loader, recorded; give it to `Trainer.fit` in place of the original."""
        return RecordedBatches(self, loader)

    def resume(self) -> str | None:
        """The ``ckpt_path`` for `Trainer.fit`: a file, or None if nothing is recorded yet.

        The file holds the trainer's counts; all other state is restored before the first batch.

        Raises:
            ProtocolError: the store holds something else than the record of a Lightning training.
            OperationalError: the store failed.
        """
        components = newest_checkpoint.components_of(self.store, "lightning")
        if components is None:
            return None
        folder = Path(tempfile.mkdtemp(prefix="pol-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        torch.save(_checkpoint(components), folder / "resume.ckpt")
        # Lightning can't know that the loader continues where it was left.
        warnings.filterwarnings("ignore", ".*your dataloader is not resumable.*")
        return str(folder / "resume.ckpt")

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """A new recorder: the optimizers are those of this call of `fit`.

        Raises:
            UnsupportedError: several processes with another strategy than ``ddp``.
        """
        if stage != "fit":
            return
        if trainer.world_size > 1 and type(trainer.strategy) is not DDPStrategy:
            raise UnsupportedError(
                f"{type(trainer.strategy).__name__} keeps the state in a form of its own: give Trainer(strategy='ddp') "
                "or shard with fully_shard in a loop of your own and record with pol.integrations.distributed"
            )
        self._trainer, self.recorder = trainer, None

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Ends the epoch of the cursor: the trainer counts batches and never draws a loader to its end.

        Raises:
            ProtocolError: the trainer was given a loader of its own.
        """
        if self.recorder is None:
            raise ProtocolError("give the trainer recording.batches(loader) instead of the loader")
        self.recorder.state.cursor.end_epoch()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Records the last steps."""
        if self.recorder is not None:
            self._catch_up(self.recorder)
            self.recorder.close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Waits until all checkpoints are stored, so that this process may resume after the error."""
        if self.recorder is not None:
            self.recorder.flush()

    def between_batches(self) -> Recorder:
        """Record or restore the state; called before a batch is drawn."""
        if self.recorder is None:
            self.recorder = self._open()
        else:
            self._catch_up(self.recorder)
        return self.recorder

    def share(self, loader: Any) -> Any:
        """This process's share of a loader, drawn as Lightning would; all of it on one process."""
        trainer = self._trainer
        if trainer is None or trainer.world_size == 1 or not isinstance(loader, DataLoader):
            return loader
        is_shuffled = not isinstance(loader.sampler, SequentialSampler)
        return trainer._data_connector._prepare_dataloader(loader, is_shuffled, RunningStage.TRAINING)

    def _catch_up(self, recorder: Recorder) -> None:
        if self._trainer.global_step != self._global_step:
            recorder.step()
        self._global_step = self._trainer.global_step

    def _open(self) -> Recorder:
        trainer = self._trainer
        if trainer is None:
            raise ProtocolError("give the recording to the trainer too: Trainer(callbacks=[recording])")
        parts: dict[str, Any] = {"lightning": _LightningState(trainer), **self._parts}
        parts |= {f"optimizer_{i}": optimizer for i, optimizer in enumerate(trainer.optimizers)}
        parts |= {f"scheduler_{i}": config.scheduler for i, config in enumerate(trainer.lr_scheduler_configs)}
        if trainer.precision_plugin.state_dict():
            parts["scaler"] = trainer.precision_plugin
        recorder = recorder_of_processes(
            trainer.world_size,
            {"lightning"},
            self.store,
            trainer.lightning_module,
            every=self._every,
            parts=parts,
            **self._options,
        )
        recorder.resume()
        self._global_step = trainer.global_step
        return recorder


class RecordedBatches:
    """A loader whose batches are recorded.

    Raises:
        UnsupportedError: a loader without a length; Lightning draws such a loader a batch ahead.
    """

    def __init__(self, recording: LightningRecording, loader: Any):
        try:
            len(loader)
        except TypeError as error:
            raise UnsupportedError(
                "the loader has no length: Lightning would draw from it ahead of the training"
            ) from error
        self._recording = recording
        self._whole = loader
        self._share: Any = None

    @property
    def _loader(self) -> Any:
        """This process's batches, once Lightning has said how many processes there are."""
        if self._share is None:
            self._share = self._recording.share(self._whole)
        return self._share

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        batches = None
        while True:
            recorder = self._recording.between_batches()
            if batches is None:
                batches = recorder.batches(self._loader)
            try:
                yield next(batches)
            except StopIteration:
                return


class _LightningState:
    """A Lightning trainer's own state: its loops, and the states of callbacks.

    Callbacks that write checkpoints are left out: they hold paths, which differ between equal runs.
    """

    def __init__(self, trainer: Trainer):
        self._trainer = trainer

    def state_dict(self) -> dict[str, Any]:
        """Counts of the loops, the names that the module saves, and the states of callbacks by their keys."""
        return {
            "version": __version__,
            "epoch": self._trainer.current_epoch,
            "step": self._trainer.global_step,
            "names": list(self._trainer.lightning_module.state_dict()),
            "loops": self._trainer.fit_loop.state_dict(),
            "callbacks": {
                callback.state_key: state
                for callback in self._trainer.callbacks
                if not _writes_checkpoints(callback) and (state := callback.state_dict())
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Check that Lightning has read the same from the file of `LightningRecording.resume`.

        It moves one count on when it restarts, which is put back here. The file has the callbacks' states of the first
        process, which may differ in the others.

        Raises:
            ProtocolError: it hasn't.
        """
        loop = self._trainer.fit_loop.epoch_loop
        loop.on_load_checkpoint(state["loops"]["epoch_loop.state_dict"])
        batches = state["loops"]["epoch_loop.batch_progress"]["total"]["completed"]
        if (self._trainer.global_step, loop.batch_progress.total.completed) != (state["step"], batches):
            raise ProtocolError(
                "the trainer isn't where the recorded training was: call trainer.fit(..., ckpt_path=recording.resume())"
            )
        for callback in self._trainer.callbacks if self._trainer.world_size > 1 else ():
            if callback.state_key in state["callbacks"]:
                callback.load_state_dict(state["callbacks"][callback.state_key])


def _writes_checkpoints(callback: Callback) -> bool:
    """Decided by the name of a base class, which both packages have."""
    return any(base.__name__ == "Checkpoint" for base in type(callback).__mro__)


def _checkpoint(components: Mapping[str, Any]) -> dict[str, Any]:
    own = components["lightning"]
    progress = (own[RANKS][0] if own.keys() == {RANKS} else own)["state"]

    def states(kind: str) -> list[Any]:
        names = sorted((n for n in components if n.startswith(f"{kind}_")), key=lambda n: int(n.rpartition("_")[2]))
        return [components[name]["state"] for name in names]

    return {
        "pytorch-lightning_version": progress["version"],
        "epoch": progress["epoch"],
        "global_step": progress["step"],
        "state_dict": module_state(components, progress["names"]),
        "loops": {"fit_loop": progress["loops"]},
        "callbacks": progress["callbacks"],
        "optimizer_states": states("optimizer"),
        "lr_schedulers": states("scheduler"),
    }
