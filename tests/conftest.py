"""Settings shared by all tests."""

import os

# Test processes share the cores, and threads of BLAS and OpenMP that spin while they wait take most of them away.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("ci")


collect_ignore = ["brownie"]  # `brownie test` runs them


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for a compiler begins first, so that no process is left alone with it at the end."""
    items.sort(key=lambda item: item.path.name != "test_project.py")
