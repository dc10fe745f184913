"""An environment with fewer packages than this one: modules that its requirements don't bring can't be imported.

``python tests/bare_environment.py '[EXTRAS, COMMANDS]'`` runs commands of ``pol`` in one process, as after
an installation with EXTRAS: it prints the exit code and the output of each.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from types import ModuleType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def brought(extras: Iterable[str]) -> frozenset[str]:
    """Names of all distributions that ``pip install proof-of-learning[extras]`` brings, its own included."""
    found: set[tuple[str, str]] = set()
    open_ = [("proof-of-learning", extra) for extra in ("", *extras)]
    while open_:
        name, extra = open_.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        try:
            needed = requires(name) or []
        except PackageNotFoundError:
            continue
        for line in needed:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                open_ += [(canonicalize_name(requirement.name), e) for e in ("", *requirement.extras)]
    return frozenset(name for name, _ in found)


def absent(extras: Iterable[str]) -> frozenset[str]:
    """Top-level modules that are installed here and wouldn't be there."""
    there = brought(extras)
    owners = packages_distributions().items()
    return frozenset(module for module, names in owners if not {canonicalize_name(name) for name in names} & there)


class Remaining(PathFinder):
    """Finds what is brought, and nothing else."""

    hidden: frozenset[str] = frozenset()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As if the rest weren't installed."""
        return None if fullname.partition(".")[0] in cls.hidden else super().find_spec(fullname, path, target)


def hide(extras: Iterable[str]) -> None:
    """From now on nothing else can be imported."""
    Remaining.hidden = absent(extras)
    sys.meta_path[sys.meta_path.index(PathFinder)] = Remaining


def main() -> None:
    """Run commands without the packages that aren't brought, and say what each printed."""
    extras, commands = json.loads(sys.argv[1])
    hide(extras)
    from cli_runner import pol

    said = [pol(*command) for command in commands]
    print(json.dumps([[each.code, each.out] for each in said]))


if __name__ == "__main__":
    main()
