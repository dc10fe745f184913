"""The recorder in the user's own loop over objects that an Accelerator has prepared.

recorder = AcceleratedRecorder("runs/first", accelerator, model, optimizer, every=100, scheduler=scheduler)
for epoch in range(recorder.resume(), epochs):
    for batch in recorder.batches(loader):
        with accelerator.accumulate(model):
            ...
        recorder.step()
recorder.close()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch import nn
from torch.optim import Optimizer

from pol.errors import ProtocolError, UnsupportedError
from pol.integrations.distributed import DistributedRecorder
from pol.training.recorder.recorder import Recorder
from pol.training.storage.store import Store


class AcceleratedRecorder(Recorder):
    """A recorder whose steps are those of the optimizer: batches that only add to gradients don't count.

    store, options: those of `Recorder`, on several processes of `DistributedRecorder`. accelerator, model, optimizer,
    scheduler: prepared. `skip_first_batches` isn't needed, as `batches` skips the used batches.

    Raises:
        UnsupportedError: an optimizer whose state is spread in a way that nothing here reads, as DeepSpeed's.
    """

    def __new__(cls, store: Store | str, accelerator: Accelerator, *others: Any, **options: Any) -> Self:
        """One that records with the other processes, if there are any."""
        require_readable(accelerator)
        is_alone = accelerator.num_processes == 1 or issubclass(cls, DistributedRecorder)
        return object.__new__(cls if is_alone else type(cls.__name__, (cls, DistributedRecorder), {}))

    def __init__(
        self,
        store: Store | str,
        accelerator: Accelerator,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        parts: Mapping[str, Any] | None = None,
        **options: Any,
    ):
        self._accelerator = accelerator
        super().__init__(
            store,
            accelerator.unwrap_model(model, keep_torch_compile=False),
            getattr(optimizer, "optimizer", optimizer),
            scaler=accelerator.scaler,
            parts={"accelerator": _AcceleratorState(accelerator), **(parts or {})},
            **options,
        )

    def step(self) -> None:
        """End a batch; it counts as a step if the optimizer has stepped."""
        if self._accelerator.sync_gradients:
            super().step()


class _AcceleratorState:
    """An Accelerator's own state: batches of a step, and the seeds of the loaders' orders."""

    def __init__(self, accelerator: Accelerator):
        self._accelerator = accelerator

    def state_dict(self) -> dict[str, Any]:
        """Counts and seeds."""
        return {
            "batches": self._accelerator.step,
            "seeds": [sampler_seed(loader) for loader in self._accelerator._dataloaders],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore them. Raises ProtocolError: another number of prepared loaders."""
        loaders = self._accelerator._dataloaders
        if len(loaders) != len(state["seeds"]):
            raise ProtocolError(f"{len(state['seeds'])} loaders had been prepared, now there are {len(loaders)}")
        self._accelerator.step = state["batches"]
        for loader, seed in zip(loaders, state["seeds"], strict=True):
            set_sampler_seed(loader, seed)


def require_readable(accelerator: Accelerator) -> None:
    """Refuse what spreads a state over processes without saying which process holds which part.

    Raises:
        UnsupportedError: DeepSpeed, Megatron-LM, FSDP of version 1 and others.
    """
    kind = accelerator.distributed_type
    # Replicas on any device, or DTensors, which know their place.
    if kind is DistributedType.NO or kind.value.startswith("MULTI_") or accelerator.is_fsdp2:
        return
    raise UnsupportedError(
        f"{kind.value} keeps parts of the state in a form of its own: train with DistributedDataParallel, or with FSDP "
        "and fsdp_version=2"
    )


def sampler_seed(loader: Any) -> int | None:
    """The seed of a prepared loader's order, which the epoch varies; None if the order is drawn otherwise."""
    return getattr(_sampler(loader), "initial_seed", None)


def set_sampler_seed(loader: Any, seed: int | None) -> None:
    """Give a prepared loader the order of the recorded one."""
    if seed is not None and sampler_seed(loader) is not None:
        _sampler(loader).initial_seed = seed


def _sampler(loader: Any) -> Any:
    """The sampler inside of a prepared loader, under the share of this process if there are several."""
    batches: Any = getattr(loader, "batch_sampler", None)
    while hasattr(batches, "batch_sampler"):
        batches = batches.batch_sampler
    return getattr(batches, "sampler", None)
