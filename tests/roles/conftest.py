"""The town of a file: a market on the node of all tests, with parties of every role and a task that is trained.

A file says what it needs in constants: `MARKET_RULES`, `GAME_RULES`, and who has `JOINED`.
"""

from collections.abc import Iterator

import pytest
from all_parties import Solver, Verifier, Whistleblower
from role_market import EXACT, SELDOM, Town, lent_town, restored, until_proof

from pol.chain.deployment_rules import RULES
from shared_chain import SharedChain

EVERYBODY = ((Verifier, "v"), (Solver, "t"), (Whistleblower, "w"), (Whistleblower, "x"))


@pytest.fixture(scope="module")
def node(
    request: pytest.FixtureRequest, chain: SharedChain, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Town]:
    """Where a file arranges what its tests share."""
    asked, folder = vars(request.module), tmp_path_factory.mktemp("store")
    with lent_town(chain, folder, asked.get("GAME_RULES", RULES), asked.get("MARKET_RULES", SELDOM)) as town:
        for kind, name in asked.get("JOINED", EVERYBODY):
            town.join(kind, name)
        yield town


@pytest.fixture(scope="module")
def proven(node: Town) -> bytes:
    """A task of the tolerant mode whose solver has committed its proof."""
    return until_proof(node)


@pytest.fixture(scope="module")
def exact(node: Town) -> bytes:
    """The same in exact mode."""
    return until_proof(node, EXACT)


@pytest.fixture
def town(node: Town, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """The town of the file, its chain and its store as they were before the test."""
    with restored(node, tmp_path_factory.mktemp("copy") / "store") as same:
        yield same
