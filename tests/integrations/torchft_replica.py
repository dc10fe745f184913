"""A replica of a training by torchft; its arguments: its number, the least number of replicas, steps, the store, and
the step after which it is killed."""

import logging
import os
import random
import signal
import sys
import time
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torchft.ddp import DistributedDataParallel
from torchft.manager import Manager
from torchft.optim import OptimizerWrapper
from torchft.process_group import ProcessGroupGloo

from pol.integrations.torchft import FaultTolerantRecorder

PATIENCE = timedelta(seconds=600)


def main(number: int, least: int, steps: int, store: str, kill: int) -> None:
    """If fewer replicas than two suffice, each goes on until it has done three steps beside the other."""
    logging.disable(logging.INFO)
    torch.set_num_threads(1)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 1))
    torch.manual_seed(100 + number)
    inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
    meet = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def load(state: dict[str, Any]) -> None:
        model.load_state_dict(state["model"])
        inner.load_state_dict(state["optimizer"])

    manager = Manager(
        pg=ProcessGroupGloo(timeout=PATIENCE), load_state_dict=load, min_replica_size=least,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": inner.state_dict()}, timeout=PATIENCE,
        quorum_timeout=PATIENCE, connect_timeout=PATIENCE, rank=0, world_size=1, replica_id=f"replica{number}",
        store_addr="127.0.0.1", store_port=meet.port, hostname="127.0.0.1", init_sync=False, use_async_quorum=False,
    )  # fmt: skip
    managed, optimizer = DistributedDataParallel(manager, model), OptimizerWrapper(manager, inner)
    recorder = FaultTolerantRecorder(store, manager, model, optimizer, every=3)
    recorder.resume()
    together = 0
    while recorder.steps < steps or (least == 1 and together < 3):
        optimizer.zero_grad()
        managed(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        recorder.step()
        together += manager.num_participants() == 2
        if kill and recorder.steps == kill:
            recorder.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if least == 1:
            time.sleep(0.05)
    recorder.close()
    manager.shutdown()
    os._exit(0)  # its threads don't end


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]), sys.argv[4], int(sys.argv[5]))
