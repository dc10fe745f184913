"""What several tests of rounds need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch.distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]  # torch exports it without a list

from pol.decentralised.processes.exchange import Exchange


@pytest.fixture
def alone() -> Iterator[Exchange]:
    """A group of this process."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield Exchange()
    dist.destroy_process_group()
