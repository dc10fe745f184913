"""What several tests of rounds need."""

from collections.abc import Iterator

import pytest
import torch.distributed as dist
from logged_trainings import Convict
from torch.distributed import HashStore  # type: ignore[attr-defined]  # torch exports it without a list

from dispute_harness import court
from lab.rounds.claim_dispute import sides
from pol.decentralised.processes.exchange import Exchange
from pol.dispute.position import Side
from pol.rounds.log.logged_rounds import LoggedRounds


@pytest.fixture
def alone() -> Iterator[Exchange]:
    """A group of this process."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield Exchange()
    dist.destroy_process_group()


@pytest.fixture(scope="session")
def convict() -> Iterator[Convict]:
    """Takes a claim to the court, where its author has to lose; one node for all tests of a process."""
    with court() as evm:

        def convicted(rounds: LoggedRounds, claim: bytes) -> None:
            assert evm.play(*sides(rounds, rounds.claims[claim])).match.winner is Side.CHALLENGER

        yield convicted
