"""torchtitan's own Trainer and Llama 3, tiny, on processors; its argument: the store."""

import os
import random
import sys
import tempfile
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

WORDS = 64


class Text(torch.utils.data.IterableDataset[tuple[dict[str, Tensor], Tensor]]):
    """Lines of a text without end, with a place that is kept."""

    def __init__(self, rank: int):
        self.rank, self.line = rank, 0

    def __iter__(self) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
        while True:
            generator = torch.Generator().manual_seed(1000 * self.rank + self.line)
            words = torch.randint(WORDS, (17,), generator=generator)
            self.line += 1
            yield {"input": words[:-1]}, words[1:]

    def state_dict(self) -> dict[str, int]:
        return {"line": self.line}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.line = state["line"]


def loader(dp_rank: int, dp_world_size: int, **others: Any) -> Any:
    from torchtitan.components.dataloader import ParallelAwareDataloader

    return ParallelAwareDataloader(Text(dp_rank), dp_rank, dp_world_size, batch_size=2)


class Unmeasured(SimpleNamespace):
    """Stands for torchtitan's figures, which it takes from a GPU."""

    def should_log(self, step: int) -> bool:
        return False

    def close(self) -> None:
        pass


def unmeasured(*arguments: Any) -> Unmeasured:
    figures = SimpleNamespace(max_reserved_gib=0.0, max_reserved_pct=0.0)
    monitor = SimpleNamespace(device_name="H100", get_peak_stats=lambda: figures)
    color = SimpleNamespace(blue="", red="", reset="")
    return Unmeasured(device_memory_monitor=monitor, color=color, ntokens_since_last_log=0, data_loading_times=[])


def main(store: str) -> None:
    # torchtitan takes "cuda" where there is no accelerator; it asks when it is imported.
    vars(torch._utils)["_get_available_device_type"] = lambda: "cpu"
    import torchtitan.distributed.utils
    from torchtitan.components.loss import build_cross_entropy_loss
    from torchtitan.components.lr_scheduler import build_lr_schedulers
    from torchtitan.components.optimizer import build_optimizers
    from torchtitan.config import JobConfig
    from torchtitan.models.llama3 import Transformer, TransformerModelArgs, parallelize_llama
    from torchtitan.protocols.train_spec import TrainSpec, register_train_spec
    from torchtitan.train import Trainer

    from pol.integrations.torchtitan import TitanRecording

    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    random.seed(0)
    np.random.seed(rank)
    small = {"tiny": TransformerModelArgs(dim=32, n_layers=2, n_heads=2, vocab_size=WORDS, max_seq_len=16)}
    spec = TrainSpec(
        Transformer, small, parallelize_llama, None, build_optimizers, build_lr_schedulers, loader, None,
        build_cross_entropy_loss, build_metrics_processor_fn=unmeasured,
    )  # fmt: skip
    register_train_spec("tiny", spec)
    config = JobConfig()
    config.model.name, config.model.flavor = "tiny", "tiny"
    config.job.dump_folder = tempfile.mkdtemp()
    config.training.seq_len, config.training.steps = 16, 14
    config.training.local_batch_size, config.training.global_batch_size = 2, 8
    config.training.mixed_precision_param = "float32"
    config.activation_checkpoint.mode = "none"
    config.debug.seed = 3
    trainer = Trainer(config)
    torchtitan.distributed.utils.set_pg_timeouts = lambda **_: None  # of NCCL
    for module in trainer.model_parts[0].modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(True)  # gloo has no scaled sum
    recording = TitanRecording(trainer, store, every=3)
    trainer.train()
    print([checkpoint.step for checkpoint in recording.recorder.record.checkpoints], flush=True)
    os._exit(0)  # torch may wait for ever when it frees sharded tensors and gloo's threads at the end of a process


if __name__ == "__main__":
    main(*sys.argv[1:])
