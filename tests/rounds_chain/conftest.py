from collections.abc import Iterator

import pytest
import toy_rounds
from toy_rounds import ToyRounds

from shared_chain import SharedChain


@pytest.fixture
def toy(chain: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyRounds]:
    """Two joined workers and their keeper, on the node of all tests."""
    with chain.lent("rounds", lambda node: toy_rounds.begin(node, tmp_path_factory.mktemp("rounds"))) as begun:
        yield begun.again()
