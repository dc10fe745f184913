"""The recorder inside the Trainer of Hugging Face transformers.

recording = TransformersRecording(trainer, "runs/first", every=100)
trainer.train(resume_from_checkpoint=recording.resume())
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ExportableState

from pol.errors import ProtocolError, UnsupportedError
from pol.integrations.accelerate import require_readable, sampler_seed, set_sampler_seed
from pol.integrations.distributed import recorder_of_processes
from pol.integrations.exchanged_state import places
from pol.training.record import newest_checkpoint
from pol.training.recorder.doctor_control import store_of
from pol.training.recorder.recorder import Recorder
from pol.training.storage.store import Store

CLOCK = ("_runtime", "_per_second")
"""Endings of logged figures that depend on a clock, which differ between equal runs."""

FIGURES, TOKENS = "_metrics", "_total_train_tokens"
"""Attributes of trl's trainers: figures since the last log, by mode, and tokens so far; they go into logs."""


class TransformersRecording(TrainerCallback):  # type: ignore[misc]  # transformers declares no types
    """Records the complete state of a Trainer every so many optimizer steps, and resumes it bit by bit.

    It adds itself to the trainer's callbacks and wraps `Trainer.get_batch_samples`: a state is recorded and restored
    between two steps, after evaluation and logging and before the next batches are drawn. The used batches of an epoch
    are drawn again in the random state at its begin.

    parts, options: those of `Recorder`, without model, optimizer, scheduler and scaler, which are the trainer's. On
    several processes, replicas or FSDP2, those of `DistributedRecorder`; all make a recording of the same store.

    Raises:
        UnsupportedError: a trainer whose state is spread in a way that nothing here reads, as DeepSpeed's.
    """

    def __init__(
        self,
        trainer: Trainer,
        store: Store | str,
        *,
        every: int = 100,
        parts: Mapping[str, Any] | None = None,
        **options: Any,
    ):
        require_readable(trainer.accelerator)
        self.store = store_of(store, 0)
        self.recorder: Recorder | None = None
        self._trainer = trainer
        self._every = every
        self._parts, self._options = parts or {}, options
        self._batches: Iterator[Any] | None = None
        self._epoch = -1
        self._resumed: str | None = None
        self._allow = ""
        self._draw, self._load = trainer.get_batch_samples, trainer._load_from_checkpoint
        trainer.get_batch_samples, trainer._load_from_checkpoint = self._draw_batches, self._load_weights
        trainer.add_callback(self)

    def resume(self, allow: str = "") -> str | None:
        """The ``resume_from_checkpoint`` for `Trainer.train`: a folder, or None if nothing is recorded yet.

        The folder holds the trainer's counts; all other state, weights too, is restored before the first step.
        allow: as in `Recorder.resume`.

        Raises:
            ProtocolError: the store holds something else than the record of a Trainer.
            OperationalError: the store failed.
        """
        self._allow = allow
        components = newest_checkpoint.components_of(self.store, "trainer")
        if components is None:
            return None
        folder = Path(tempfile.mkdtemp(prefix="pol-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        counts, args = components["trainer"], self._trainer.args
        own = places(counts, args.world_size)[args.process_index]
        (folder / "trainer_state.json").write_text(json.dumps(own["state"]["state"]))
        self._resumed = str(folder)
        return self._resumed

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """A new recorder: the optimizer is that of this call of `train`."""
        self.recorder = None

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """The batches come from a new pass over the loader."""
        self._batches = None

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Ends the epoch of the cursor and records the last steps, before the trainer may load the best model."""
        recorder = self.recorder
        if recorder is None:
            return
        # A trainer counts batches and never draws a loader to its end; it leaves the middle of one if it has to stop.
        if float(state.epoch).is_integer() and recorder.epoch == self._epoch:
            recorder.state.data.loaders["data"].end_epoch()
        if control.should_training_stop or state.global_step >= state.max_steps:
            self._catch_up(recorder)
            recorder.close()

    def _load_weights(self, folder: str, model: Any = None) -> None:
        """`Trainer._load_from_checkpoint`: the folder of `resume` holds no weights."""
        if folder != self._resumed:
            self._load(folder, model)

    def _draw_batches(self, drawn_by_trainer: Iterator[Any], count: int, device: Any) -> Any:
        """`Trainer.get_batch_samples`: between two steps. The trainer's own iterator is never started."""
        recorder = self.recorder
        if recorder is None:
            recorder = self.recorder = self._open()
        else:
            self._catch_up(recorder)
        if self._batches is None:
            self._epoch = recorder.epoch
            self._batches = recorder.batches(self._trainer.callback_handler.train_dataloader)
        return self._draw(self._batches, count, device)

    def _catch_up(self, recorder: Recorder) -> None:
        if recorder.steps < self._trainer.state.global_step:
            recorder.step()

    def _open(self) -> Recorder:
        trainer = self._trainer
        try:
            len(trainer.callback_handler.train_dataloader)
        except TypeError as error:
            raise UnsupportedError(
                "the training data has no length, so the trainer can't go on in the middle of it"
            ) from error
        optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)  # accelerate wraps it
        recorder = recorder_of_processes(
            trainer.args.world_size,
            {"trainer"},
            self.store,
            trainer.model,
            optimizer,
            every=self._every,
            scheduler=trainer.lr_scheduler,
            scaler=trainer.accelerator.scaler,
            parts={"trainer": _TrainerCounts(trainer), **self._parts},
            **self._options,
        )
        recorder.resume(self._allow)
        return recorder


class _TrainerCounts:
    """A Trainer's own state."""

    def __init__(self, trainer: Trainer):
        self._trainer = trainer

    def state_dict(self) -> dict[str, Any]:
        """Its TrainerState without clock times, states of callbacks, and sums since the last log."""
        trainer = self._trainer
        callbacks = [*trainer.callback_handler.callbacks, trainer.control]
        exported = TrainerState(stateful_callbacks=[c for c in callbacks if isinstance(c, ExportableState)])
        state = dataclasses.asdict(
            dataclasses.replace(trainer.state, stateful_callbacks=dict(exported.stateful_callbacks))
        )
        state["log_history"] = [
            {key: value for key, value in log.items() if not key.endswith(CLOCK)} for log in state["log_history"]
        ]
        # Plans and the end of this training, which a longer one doesn't have.
        del state["max_steps"], state["num_train_epochs"]
        state["stateful_callbacks"]["TrainerControl"]["args"].pop("should_training_stop")
        of_trl = vars(trainer).get(FIGURES)
        return {
            "state": state,
            "loss": trainer._tr_loss,
            "last_logged": trainer._globalstep_last_logged,
            "operations": float(trainer.current_flos),
            "seed": sampler_seed(trainer.callback_handler.train_dataloader),
            **({FIGURES: {mode: dict(found) for mode, found in of_trl.items()}} if of_trl is not None else {}),
            **({TOKENS: vars(trainer)[TOKENS]} if TOKENS in vars(trainer) else {}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that the folder of `TransformersRecording.resume` has no place for.

        Raises:
            ProtocolError: the trainer wasn't given the folder.
        """
        trainer = self._trainer
        recorded, now = state["state"]["global_step"], trainer.state.global_step
        if recorded != now:
            raise ProtocolError(
                f"the store holds {recorded} steps, the trainer is at {now}: call "
                "trainer.train(resume_from_checkpoint=recording.resume())"
            )
        trainer._tr_loss = state["loss"].to(trainer.args.device)
        trainer._globalstep_last_logged = state["last_logged"]
        trainer.current_flos = state["operations"]
        set_sampler_seed(trainer.callback_handler.train_dataloader, state["seed"])
        if FIGURES in state:
            for mode, figures in state[FIGURES].items():
                vars(trainer)[FIGURES][mode].clear()
                vars(trainer)[FIGURES][mode].update(figures)
        if TOKENS in state:
            vars(trainer)[TOKENS] = state[TOKENS]
