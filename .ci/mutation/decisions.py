#!/usr/bin/env python3
"""Change one place of a rule in Python after the other and run the tests that come there; fails if none notices.

    decisions.py [--sample N] [--again] [MODULE ...]

The tests of a package run once, to see who comes where. Then each mutant's code takes the place of the usual one in
the functions that there are, and the tests that come to its line run, quickest first, until one fails. A mutant is
killed if that test passes again without it; slow if the tests take a core five times as long as usual, or one says that
it ran out of time, which is no kill on a loaded machine; untested if no test comes there; broken if a test fails
without it, too. The others survive. Reasons are in mutants.txt beside this file. What other processes do isn't seen.
"""

import argparse
import ast
import gc
import json
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn

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

    def install(self, codes: Mapping[tuple[str, int], CodeType]) -> dict[tuple[str, int], CodeType]:
        """Gives each function of the module that there is another code; returns those that they had."""
        usual = {}
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename == self.code.co_filename:
                key = each.__code__.co_qualname, each.__code__.co_firstlineno
                usual[key], each.__code__ = each.__code__, codes.get(key, each.__code__)
        return usual


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


def _line(statement: ast.AST) -> str:
    return ast.unparse(statement).splitlines()[0]


def _is_strict(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg == "strict"


def changes(path: str) -> list[Change]:
    """All mutants of a module. Messages and annotations stay as they are."""
    tree = ast.parse((ROOT / path).read_text())
    found = []

    def visit(parent: ast.AST, statement: ast.stmt | None) -> None:
        if isinstance(parent, ast.Raise | ast.JoinedStr | ast.arguments | ast.AnnAssign):
            return
        for field, value in ast.iter_fields(parent):
            nodes = value if isinstance(value, list) else [value]
            for n, node in enumerate(nodes):
                if not isinstance(node, ast.AST) or field in {"decorator_list", "returns"} or _is_strict(node):
                    continue
                own = node if isinstance(node, ast.stmt) else statement
                for other in _instead(node, field) if own and statement else ():
                    before = _line(own)
                    nodes[n] = ast.copy_location(other, node)
                    setattr(parent, field, nodes if value is nodes else other)
                    code = compile(ast.fix_missing_locations(tree), str(ROOT / path), "exec")
                    after = _line(other if own is node else own)
                    found.append(Change(path, node.lineno, before, after, code, own.lineno))
                    nodes[n] = node
                    setattr(parent, field, value)
                visit(node, own if statement or isinstance(node, ast.FunctionDef) else None)

    visit(tree, None)
    return found


class Attack:
    """Runs the mutants of one package in the place of its tests."""

    def __init__(self, file: Path, todo: Sequence[Change], again: bool) -> None:
        self.todo, self.fates, self.file = todo, defaultdict[str, list[Change]](list), file
        self.again = again or not file.exists()
        self.bad = dict[str, str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps how a test failed."""
        if report.failed:
            self.bad[report.nodeid] = " ".join(report.longreprtext.splitlines()[-1:])

    def _first(self, items: Sequence[pytest.Item], limit: float = inf) -> str:
        """The first of these tests that fails and how, after so many seconds of a core `slow`; else empty."""
        session = items[0].session
        self.bad.clear()
        signal.setitimer(signal.ITIMER_VIRTUAL, min(limit, 1e6))
        try:
            for item in items:
                # What the session shares, such as a node, stays; what a mutant may have made in a module doesn't.
                item.ihook.pytest_runtest_protocol(item=item, nextitem=session)
                for name, line in self.bad.items():
                    return f"{name}: {line}"
        except KeyboardInterrupt:
            session._setupstate.teardown_exact(session)
            return "slow"
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return ""

    def _fate(self, change: Change, items: Sequence[pytest.Item], limit: float) -> str:
        """A kill counts where the same test passes again without the mutant."""
        usual = change.install(dict(_codes(change.code)))
        try:
            found = self._first(items, limit)
        finally:
            change.install(usual)
        if not found or found == "slow":
            return found or "survives"
        killer = [item for item in items if found.startswith(f"{item.nodeid}: ")]
        return f"{'broken' if self._first(killer) else 'slow' if 'Timeout' in found else 'killed'} by {found}"

    def _look(self, items: Sequence[pytest.Item]) -> None:
        """Runs all tests and keeps which lines each comes to, what it takes, and which fail."""
        from coverage import Coverage

        watch = Coverage(data_file=None, include=[str(ROOT / each) for each in {each.path for each in self.todo}])
        seconds, bad = dict[str, float](), dict[str, str]()
        watch.start()
        for item, following in zip(items, [*items[1:], items[0].session], strict=True):
            watch.switch_context(item.nodeid)
            begin = time.process_time()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = time.process_time() - begin
        watch.stop()
        bad, data = dict(self.bad), watch.get_data()
        lines = {path: data.contexts_by_lineno(path) for path in data.measured_files()}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({"lines": lines, "seconds": seconds, "bad": bad}))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Runs the tests once, then each mutant."""
        if self.again:
            self._look(session.items)
        seen = json.loads(self.file.read_text())
        for name, line in seen["bad"].items():
            print(f"\nfails before any mutation, and is left out: {name}: {line}")
        items = {item.nodeid: item for item in session.items if item.nodeid not in seen["bad"]}
        for change in self.todo:
            lines, there = seen["lines"].get(str(ROOT / change.path), {}), range(change.first, change.number + 1)
            names = {name for line in there for name in lines.get(str(line), ())} & items.keys()
            chosen = [items[name] for name in sorted(names, key=lambda name: seen["seconds"][name])]
            limit = 5 + 5 * sum(seen["seconds"][name] for name in names)
            result = self._fate(change, chosen, limit) if chosen else "untested"
            self.fates[result.partition(" ")[0]].append(change)
            print(f"\n{change.path}:{change.number} {result[:300]}", f"- {change.before[:200]}", sep="\n")
            print(f"+ {change.after[:200]}", flush=True)
        session._setupstate.teardown_exact(None)
        return True


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


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
    signal.signal(signal.SIGVTALRM, _interrupt)
    reasons, table, bad = justified(), list[str](), 0
    for package, todo in packages.items():
        tests = options.tests or [f"tests/{each}" for each in TESTS.get(package, (package,))]
        tier = ["-m", options.tier] if options.tier else []
        attack = Attack(SEEN / f"{package}{options.tier}.json", todo, options.again)
        pytest.main(["-q", "--tb=line", "-rN", "-p", "no:cacheprovider", *tier, *tests], plugins=[attack])
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
