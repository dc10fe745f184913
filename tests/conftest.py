"""Settings shared by all tests."""

import gc
import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

# Test processes share the cores, and threads of BLAS and OpenMP that spin while they wait take most of them away.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from shared_chain import SharedChain

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("ci")


pytest_plugins = ["contract_run", "suite_durations", "tiers"]
collect_ignore = ["brownie"]  # `brownie test` runs them


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """A file's tests stay in one process: what they share, such as a node with a task on it, is made once."""
    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first, so that no process is left alone with one at the end."""
    names = ["test_market_quickstarts", "test_up", "test_guides", "tests", "roles", "zk", "demo", "dispute", "chain"]
    order = {name: place for place, name in enumerate(names)}
    last = len(order)
    items.sort(key=lambda item: min(order.get(item.path.stem, last), order.get(item.path.parent.name, last)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Imported modules live to the end: the collector goes through them neither now nor, every few seconds, later."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


@pytest.fixture(scope="session", autouse=True)
def own_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands keep their journals in the user's folder: tests have one of their own, as have processes of tests."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session")
def chain() -> "Iterator[SharedChain]":
    """The chain of all tests of this process, in memory, which begins with the first of them that needs one."""
    from shared_chain import shared_chain

    with shared_chain() as chain:
        yield chain


@pytest.fixture(scope="session")
def node_chain() -> "Iterator[SharedChain]":
    """A real node of all tests of this process, for those that ask it for more than its latest state."""
    from shared_chain import shared_node

    with shared_node() as chain:
        yield chain
