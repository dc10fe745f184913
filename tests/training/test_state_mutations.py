"""No byte of a complete state, and no value in it, can change without changing the root."""

from lab.benchmarks import state_mutations
from pol.training.state import components


def test_one_change_anywhere_changes_the_root() -> None:
    """550 here; `pol bench record` makes 11,000."""
    state = state_mutations.trained()
    mutations = state_mutations.mutate(state, 550, seed=2)
    assert mutations.missed == ()
    assert set(mutations.made) == set(state)
    assert min(mutations.made.values()) == 50


def test_an_equal_state_has_the_same_root() -> None:
    """Otherwise the mutations would prove nothing."""
    one, two = (components.encode(state_mutations.trained()) for _ in range(2))
    assert one.root == two.root
    assert components.encode(components.decode(one)).root == one.root
