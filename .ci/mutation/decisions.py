#!/usr/bin/env python3
"""Change one place of a rule in Python after the other and run the tests that come there; fails if none notices.

    decisions.py [--sample N] [--again] [MODULE ...]

The tests of a package run once, to see who comes where. Then each mutant has a process of its own, forked behind the
imports, and runs the tests that come to its line, quickest first, until one fails. A mutant is killed if a test fails;
slow if a test takes too long, which is no kill on a loaded machine; untested if no test comes there. The others
survive. Reasons are in mutants.txt beside this file. What a subprocess of a test does is not seen.
"""

import argparse
import ast
import contextlib
import gc
import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from mutants import ROOT, Mutant, justified

SEEN = ROOT / "build" / "audit" / "decisions"
# Rules that decide money or verdicts, and the folders of their tests that bear another name.
MODULES = """
    pol/roles/**/*decisions.py pol/roles/process/[sou][cbr]*.py pol/roles/party/due_moves.py pol/claims/*.py
    pol/dispute/rules.py pol/dispute/position.py pol/dispute/agreed_facts.py pol/dispute/moves.py
    pol/incentives/a[bu]*.py pol/incentives/[fjpsw]*.py pol/verification/verdict/*.py
    pol/rounds/auditing/*.py pol/rounds/roster.py pol/rounds/admission.py pol/rounds/earlier_claims.py
    pol/training/state/data_cursor*.py pol/training/state/epoch_lengths.py pol/verification/runs/*_comparison.py
"""
TESTS = {
    "claims": ("verification", "incentives", "cli/test_sample.py"),
    "incentives": ("incentives", "rounds_chain/test_round_shares.py"),
    "rounds": ("rounds", "rounds_chain"),
}
# Each operator and what is written instead.
OPERATORS = """
    Lt LtE GtE, LtE Lt, Gt GtE LtE, GtE Gt, Eq NotEq, NotEq Eq, Is IsNot, IsNot Is, In NotIn, NotIn In, And Or, Or And,
    Add Sub, Sub Add, Mult Add, FloorDiv Mult, Div Mult
"""
SWAPS = {name: others for name, *others in map(str.split, OPERATORS.split(","))}


@dataclass(frozen=True)
class Change(Mutant):
    """A changed node of a module, the module with it, and the first line of its statement."""

    code: CodeType
    first: int

    def install(self) -> None:
        """Gives each function of the module that there is the changed code."""
        codes = dict(_codes(self.code))
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename == self.code.co_filename:
                each.__code__ = codes[each.__code__.co_qualname, each.__code__.co_firstlineno]


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    yield (code.co_qualname, code.co_firstlineno), code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _swaps(operator: ast.AST) -> list[Any]:
    return [getattr(ast, name)() for name in SWAPS.get(type(operator).__name__, ())]


def _instead(node: ast.AST, field: str) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare(left, operators, others):
            for n, operator in enumerate(operators):
                for swap in _swaps(operator):
                    yield ast.Compare(left, [*operators[:n], swap, *operators[n + 1 :]], others)
        case ast.BoolOp(operator, values):
            yield from (ast.BoolOp(swap, values) for swap in _swaps(operator))
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, operator, right):
            yield from (ast.BinOp(left, swap, right) for swap in _swaps(operator))
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Return(value) if value is not None and ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Raise() | ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.expr() if field == "test":
            yield ast.UnaryOp(ast.Not(), node)


def _places(parent: ast.AST, first: int = 0, inside: bool = False) -> Iterator[tuple[ast.AST, ast.AST, int]]:
    """Each node of a function, and what may stand there while it does. Messages and annotations stay as they are.

    Then the first line of its statement: the lines from there up to the node tell which tests come there.
    """
    if isinstance(parent, ast.Raise | ast.JoinedStr | ast.arguments | ast.AnnAssign):
        return
    for field, value in ast.iter_fields(parent):
        nodes = value if isinstance(value, list) else [value]
        for n, node in enumerate(nodes):
            if not isinstance(node, ast.AST) or field in {"decorator_list", "returns"}:
                continue
            begin = node.lineno if isinstance(node, ast.stmt) else first
            for other in _instead(node, field) if inside else ():
                ast.copy_location(other, node)
                nodes[n] = other
                setattr(parent, field, nodes if value is nodes else other)
                yield node, other, begin
            nodes[n] = node
            setattr(parent, field, value)
            yield from _places(node, begin, inside or isinstance(node, ast.FunctionDef))


def changes(path: str) -> list[Change]:
    """All mutants of a module."""
    tree = ast.parse((ROOT / path).read_text())
    found = []
    for node, other, first in _places(tree):
        code = compile(ast.fix_missing_locations(tree), str(ROOT / path), "exec")
        found.append(Change(path, node.lineno, ast.unparse(node), ast.unparse(other), code, first))
    return found


class Attack:
    """Runs the mutants of one package in the place of its tests."""

    def __init__(self, file: Path, todo: Sequence[Change], again: bool) -> None:
        self.todo, self.fates, self.file = todo, defaultdict[str, list[Change]](list), file
        self.again = again or not file.exists()
        self.seconds, self.bad = dict[str, float](), dict[str, str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps how a test failed."""
        if report.failed:
            self.bad[report.nodeid] = "".join(str(report.longreprtext).splitlines()[-1:])

    def _forked(self, items: Sequence[pytest.Item], change: Change | None, limit: int) -> str:
        """Runs tests in another process of so many seconds on a core, the mutant's up to the first that fails."""
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if not child:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            for n in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), n)
            result = "broken"
            try:
                result = self._mutant(items, change) if change else self._everything(items)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the parent is told
                result = f"broken {error!r}"
            finally:
                os.write(writing, result.encode()[:60_000])
                os._exit(0)
        os.close(writing)
        with open(reading, "rb") as result:
            try:
                return result.read().decode() or "slow"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)

    def _mutant(self, items: Sequence[pytest.Item], change: Change) -> str:
        change.install()
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            for name, line in self.bad.items():
                item.session._setupstate.teardown_exact(None)
                return f"{'slow' if 'Timeout' in line else 'killed'} by {name}: {line}"
        return "survives"

    def _everything(self, items: Sequence[pytest.Item]) -> str:
        from coverage import Coverage

        watch = Coverage(data_file=None, include=[str(ROOT / each) for each in {each.path for each in self.todo}])
        watch.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            watch.switch_context(item.nodeid)
            begin = time.process_time()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            self.seconds[item.nodeid] = time.process_time() - begin
        watch.stop()
        data = watch.get_data()
        lines = {path: data.contexts_by_lineno(path) for path in data.measured_files()}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({"lines": lines, "seconds": self.seconds, "bad": self.bad}))
        return "done"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Runs the tests once, then each mutant."""
        if self.again and self._forked(session.items, None, 7200) != "done":
            raise SystemExit("the tests didn't run to their end before any mutation")
        seen = json.loads(self.file.read_text())
        for name, line in seen["bad"].items():
            print(f"fails before any mutation, and is left out: {name}: {line}")
        items = {item.nodeid: item for item in session.items if item.nodeid not in seen["bad"]}
        for change in self.todo:
            lines = seen["lines"].get(str(ROOT / change.path), {})
            names = {
                name for n in range(change.first, change.number + 1) for name in lines.get(str(n), ())
            } & items.keys()
            chosen = [items[name] for name in sorted(names, key=lambda name: seen["seconds"][name])]
            limit = 20 + 5 * sum(seen["seconds"][name] for name in names)
            result = self._forked(chosen, change, ceil(limit)) if chosen else "untested"
            self.fates[result.partition(" ")[0]].append(change)
            print(f"{change.path}:{change.number} {result[:300]}", f"- {change.before[:200]}", sep="\n")
            print(f"+ {change.after[:200]}", flush=True)
        return True


def main() -> int:
    """Mutate each module named; 1 if a mutant lives without a reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", default=sorted({p for each in MODULES.split() for p in ROOT.glob(each)}))
    parser.add_argument("--sample", type=int, default=12, help="so many of a module, drawn by a fixed seed")
    parser.add_argument("--tier", default="", help="the tests of a mark, `rules`, and not the default ones")
    parser.add_argument("--tests", action="append", help="these tests, and not those of the package's folder")
    parser.add_argument("--again", action="store_true", help="look again which tests come where")
    options = parser.parse_args()
    packages = defaultdict[str, list[Change]](list)
    for module in options.modules:
        path = Path(module).resolve().relative_to(ROOT)
        found = changes(str(path))
        random.Random(0).shuffle(found)
        packages[path.parts[1]] += found[: options.sample]
    reasons, table, bad = justified(), list[str](), 0
    for package, todo in packages.items():
        tests = options.tests or [f"tests/{each}" for each in TESTS.get(package, (package,))]
        tier = ["-m", options.tier] if options.tier else []
        attack = Attack(SEEN / f"{package}{options.tier}.json", todo, options.again)
        pytest.main(["-qs", "-p", "no:cacheprovider", *tier, *tests], plugins=[attack])
        for path in sorted({change.path for change in todo}):
            fates = {fate: [c for c in found if c.path == path] for fate, found in attack.fates.items()}
            alive = [c for fate, found in fates.items() if fate != "killed" for c in found]
            bad += (lives := len([c for c in alive if c.key not in reasons]))
            numbers = ", ".join(f"{len(found)} {fate}" for fate, found in fates.items() if found)
            table.append(f"{path}: {numbers}; {lives} live without a reason")
    print("\n".join(table))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
