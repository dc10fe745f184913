"""The town of a file: a market on the node of all tests, with parties of every role and a task that is trained.

A file says what it needs in constants: `MARKET_RULES`, `GAME_RULES`, and who has `JOINED`.
"""

import json
from collections.abc import Iterator

import pytest
from all_parties import Solver, Verifier, Whistleblower
from role_market import EXACT, SELDOM, Town, lent_town, restored, until_proof

from pol.chain.deployment_rules import RULES
from pol.chain.rpc.rpc_cache import RpcCache, _same
from pol.chain.rpc.rpc_methods import pinned
from shared_chain import SharedChain

EVERYBODY = ((Verifier, "v"), (Solver, "t"), (Whistleblower, "w"), (Whistleblower, "x"))


@pytest.fixture(autouse=True)
def kept_values(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each value that a party keeps without asking the node again is asked for all the same, and compared.

    A file whose node `LAGS` gets old answers and old logs, so values differ there.
    """
    wrong, renew = list[str](), RpcCache._renew

    def checked(cache: RpcCache) -> None:
        renew(cache)
        kept = [value for value in cache._values.values() if value.news is not None and value.block == cache._block]
        needs = {request: known for value in kept for request, known in (value.needs or {}).items()}
        needs = {request: known for request, known in needs.items() if request not in cache._answers}
        if cache._batch is None or not needs:
            return
        calls = [(method, pinned(method, params, cache._number)) for method, params in map(json.loads, needs)]
        for (asked, known), found in zip(needs.items(), cache._batch(calls), strict=True):
            if found is not None and not _same(known, found):
                wrong.append(f"{asked}: {known} is kept, and the node says {found}")

    monkeypatch.setattr(RpcCache, "_renew", checked)
    yield
    assert getattr(request.module, "LAGS", False) or not wrong


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
