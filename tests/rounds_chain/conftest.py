"""One deployment for all tests of a file, put back behind each."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import toy_rounds
from toy_rounds import ToyRounds

from node_snapshots import unchanged
from pol.chain.node.connection import Connection


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> ToyRounds:
    folder: Path = tmp_path_factory.mktemp("rounds")
    return toy_rounds.begin(Connection.embedded(), folder)


@pytest.fixture
def toy(begun: ToyRounds) -> Iterator[ToyRounds]:
    """Two joined workers and their keeper, on the embedded chain."""
    with unchanged(begun.connection):
        yield begun.again()
