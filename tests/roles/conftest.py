"""A market with parties of every role, whose verifiers seldom have to err; a file with other needs has its own."""

from collections.abc import Iterator

import pytest
from role_market import SELDOM, Town

from anvil_node import anvil_node
from node_snapshots import unchanged
from pol.chain.node.connection import Connection
from pol.roles.solver.solver import Solver
from pol.roles.verifier.verifier import Verifier
from pol.roles.whistleblower.whistleblower import Whistleblower


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with anvil_node() as url:
        town = Town(tmp_path_factory.mktemp("store"), connection=Connection.to(url), market_rules=SELDOM)
        for kind, name in ((Verifier, "v"), (Solver, "t"), (Whistleblower, "w"), (Whistleblower, "x")):
            town.join(kind, name)
        yield town


@pytest.fixture
def town(node: Town) -> Iterator[Town]:
    with unchanged(node.connection):
        yield node
