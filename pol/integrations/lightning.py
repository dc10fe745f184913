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
from dataclasses import replace
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
from pol.training.recorder.recorder_options import Checkpoints
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
        self._allow = ""

    def batches(self, loader: Any) -> RecordedBatches:
        """The loader, recorded; give it to `Trainer.fit` in place of the original."""
        return RecordedBatches(self, loader)

    def resume(self, allow: str = "") -> str | None:
        """The ``ckpt_path`` for `Trainer.fit`: a file, or None if nothing is recorded yet.

        The file holds the trainer's counts; all other state is restored before the first batch. allow: as in
        `Recorder.resume`.

        Raises:
            ProtocolError: the store holds something else than the record of a Lightning training.
            OperationalError: the store failed.
        """
        self._allow = allow
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
        self.recorder.state.data.loaders["data"].end_epoch()

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
        options = self._options
        for callback in trainer.callbacks:
            if all(base.__name__ != "StochasticWeightAveraging" for base in type(callback).__mro__):
                continue
            # Its last pass, which has no backward(), ends with a step by the gradients of the step before.
            options = options | {"checkpoints": replace(options.get("checkpoints", Checkpoints()), gradients=True)}
            # It takes over the scheduler when an epoch begins, and Lightning resumes in the middle of one.
            if callback._scheduler_state is not None and not callback._initialized:
                callback.on_train_epoch_start(trainer, trainer.lightning_module)
        parts: dict[str, Any] = {"lightning": _LightningState(trainer), **self._parts}
        parts |= {f"optimizer_{i}": optimizer for i, optimizer in enumerate(trainer.optimizers)}
        parts["schedulers"] = _Schedulers(trainer)
        if trainer.precision_plugin.state_dict():
            parts["scaler"] = trainer.precision_plugin
        recorder = recorder_of_processes(
            trainer.world_size,
            {"lightning"},
            self.store,
            trainer.lightning_module,
            every=self._every,
            parts=parts,
            **options,
        )
        recorder.resume(self._allow)
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


class _Schedulers:
    """The schedulers of a trainer; a callback may exchange them while it trains."""

    def __init__(self, trainer: Trainer):
        self._trainer = trainer

    def state_dict(self) -> list[Any]:
        """Their states."""
        return [config.scheduler.state_dict() for config in self._trainer.lr_scheduler_configs]

    def load_state_dict(self, states: list[Any]) -> None:
        """Restore them; ProtocolError for another number."""
        schedulers = [config.scheduler for config in self._trainer.lr_scheduler_configs]
        if len(schedulers) != len(states):
            raise ProtocolError(
                f"{len(states)} schedulers were recorded, now there are {len(schedulers)}: configure the same ones. A "
                "run can't be resumed inside of StochasticWeightAveraging's last pass, for running statistics"
            )
        for scheduler, state in zip(schedulers, states, strict=True):
            scheduler.load_state_dict(state)


class _LightningState:
    """A Lightning trainer's own state: its loops, callbacks, and what callbacks and module add to checkpoints.

    Callbacks that write checkpoints are left out: they hold paths, which differ between equal runs.
    """

    def __init__(self, trainer: Trainer):
        self._trainer = trainer
        self.watched = [callback for callback in trainer.callbacks if not _writes_checkpoints(callback)]
        self._restored: tuple[int, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        """Counts of the loops, the names that the module saves, states of callbacks, and what hooks add.

        Until the first step after a resumption the counts are the recorded ones: a trainer that goes on after its end
        has moved some of them to the next epoch.
        """
        trainer, module = self._trainer, self._trainer.lightning_module
        step, loops = trainer.global_step, trainer.fit_loop.state_dict()
        if self._restored is not None and self._restored[0] == step:
            loops = self._restored[1]
        own = {
            "epoch": trainer.current_epoch,
            "global_step": step,
            "state_dict": module.state_dict(),
            "callbacks": {callback.state_key: state for callback in self.watched if (state := callback.state_dict())},
        }
        saved = dict(own)
        if trainer.datamodule is not None and (state := trainer.datamodule.state_dict()):
            saved[type(trainer.datamodule).__qualname__] = state
        for callback in self.watched:
            callback.on_save_checkpoint(trainer, module, saved)
        module.on_save_checkpoint(saved)
        return {
            "version": __version__,
            "step": step,
            "names": list(own["state_dict"]),
            "loops": loops,
            "callbacks": own["callbacks"],
            "moved": [key for key, value in saved.items() if value is own["state_dict"] and key != "state_dict"],
            "added": {k: v for k, v in saved.items() if v is not own.get(k) and v is not own["state_dict"]},
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
        self._restored = state["step"], state["loops"]
        for callback in self._trainer.callbacks if self._trainer.world_size > 1 else ():
            if callback.state_key in state["callbacks"]:
                callback.load_state_dict(state["callbacks"][callback.state_key])


def _writes_checkpoints(callback: Callback) -> bool:
    """Decided by the name of a base class, which both packages have."""
    return any(base.__name__ == "Checkpoint" for base in type(callback).__mro__)


def _checkpoint(components: Mapping[str, Any]) -> dict[str, Any]:
    own = components["lightning"]
    progress = (own[RANKS][0] if own.keys() == {RANKS} else own)["state"]
    optimizers = sorted((name for name in components if name.startswith("optimizer_")), key=lambda n: (len(n), n))
    weights = module_state(components, progress["names"])
    return {
        "pytorch-lightning_version": progress["version"],
        "epoch": progress["loops"]["epoch_progress"]["current"]["completed"],
        "global_step": progress["step"],
        "state_dict": weights,
        "loops": {"fit_loop": progress["loops"]},
        "callbacks": progress["callbacks"],
        "optimizer_states": [components[name]["state"] for name in optimizers],
        "lr_schedulers": components["schedulers"]["state"],
        **dict.fromkeys(progress["moved"], weights),
        **progress["added"],
    }
