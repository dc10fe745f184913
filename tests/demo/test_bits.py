"""The whole training of the demo, executed by everything that can: the same bytes."""

import pytest

from lab.benchmarks.benchmark_areas import bits_figures

pytestmark = pytest.mark.long


def test_one_thread_two_threads_and_the_reference_agree_on_every_state() -> None:
    figures = bits_figures()
    assert figures["state_bytes_compared"].value > 20e6
    assert figures["state_bytes_differing"].value == 0
