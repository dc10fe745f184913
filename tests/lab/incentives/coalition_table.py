"""The table of "A search" in docs/spec/game.md: ``PYTHONPATH=tests python -m lab.incentives.coalition_table``."""

from lab.incentives.amounts import amount
from lab.incentives.coalition_search import SHARES, worst
from lab.incentives.rule_variants import REVERTED, RULES
from lab.incentives.task_needs import EXAMPLE


def main() -> None:
    """Print what a coalition gains at most with the rules as decided, and with each as it was, by its tickets."""
    for name, rules in {"rules as decided": RULES, **REVERTED}.items():
        gains = (amount(worst(EXAMPLE, share, rules).found.excess) for share in SHARES)
        print(name, *gains, sep=" | ")


if __name__ == "__main__":
    main()
