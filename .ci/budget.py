#!/usr/bin/env python3
"""Lines and files of every room of the house, against what budget.toml lets it have: python .ci/budget.py [--lower]

A room is a folder of pol/, contracts/ or tests/ with all below it; the files beside these folders are a room as well.
Lines are those of source files that git tracks (or would track), empty ones included; `json` is all JSON but vectors
and npm's lock. Prints the rooms, those that have grown most first, and ends with 1 if one is above its row, or if a row
was ever raised without an ADR that says so: a line `Budget: ROOM lines 1200 -> 1300` in docs/adr (or `files`).
--lower writes what is used into the rows that allow more.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ".ci/budget.toml"
KINDS = ("lines", "files")
NONE = dict.fromkeys(KINDS, 0)
SOURCE = {".py", ".pyi", ".cpp", ".h", ".cu", ".cuh", ".inc", ".sol"}

Rows = Mapping[str, Mapping[str, int]]


def git(*arguments: str) -> str:
    """The output of git in this checkout."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def room(path: Path) -> str | None:
    """The room of a tracked file, None for a file that has none."""
    top = path.parts[0]
    if path.suffix == ".json":
        return None if top == "fixtures" or path.name == "package-lock.json" else "json"
    if path.suffix not in SOURCE:
        return None
    return "/".join(path.parts[: min(2, len(path.parts) - 1)]) if top in ("pol", "contracts", "tests") else top


def used() -> dict[str, dict[str, int]]:
    """Lines and files of every room in the working tree."""
    rooms: dict[str, dict[str, int]] = {}
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")[:-1]:
        found = room(Path(name))
        if found is None or not (ROOT / name).is_file():
            continue
        row = rooms.setdefault(found, dict(NONE))
        row["lines"] += (ROOT / name).read_bytes().count(b"\n")
        row["files"] += 1
    return rooms


def raises() -> Iterator[str]:
    """Every step up of a row in the history of the table, as an ADR has to say it."""
    commits = git("log", "--first-parent", "--reverse", "--format=%H", "--", TABLE).split()
    texts = [git("show", f"{commit}:{TABLE}") for commit in commits] + [(ROOT / TABLE).read_text()]
    versions: list[Rows] = [tomllib.loads(text)["rooms"] for text in texts]
    for old, new in pairwise(versions):
        for name, row in new.items():
            for kind in KINDS:
                before = old.get(name, {}).get(kind, 0)
                if row[kind] > before:
                    yield f"Budget: {name} {kind} {before} -> {row[kind]}"


def text(aims: Rows, rooms: Rows) -> str:
    """The table as its file has it."""
    lines = ["# What each room may have: python .ci/budget.py. Rows only fall; a raise needs an ADR."]
    for title, rows in (("aims", aims), ("rooms", rooms)):
        lines += ["", f"[{title}]"]
        lines += [
            f'"{name}" = {{ {", ".join(f"{kind} = {row[kind]}" for kind in KINDS if kind in row)} }}'
            for name, row in sorted(rows.items())
        ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Print the table; 1 if a room or the history of its row breaks the rule."""
    if arguments not in ([], ["--lower"]):
        raise SystemExit("usage: python .ci/budget.py [--lower]")
    table: dict[str, Rows] = tomllib.loads((ROOT / TABLE).read_text())
    rows, now = table["rooms"], used()
    if arguments:
        rows = {
            name: {kind: min(row[kind], now[name][kind]) for kind in KINDS} for name, row in rows.items() if name in now
        }
        (ROOT / TABLE).write_text(text(table["aims"], rows))
    over = {name: {kind: now[name][kind] - rows.get(name, NONE)[kind] for kind in KINDS} for name in now}
    print(f"{'room':28}{'lines':>8}{'of':>8}{'':>8}{'files':>8}{'of':>8}")
    for name in sorted(now, key=lambda name: (-over[name]["lines"], -over[name]["files"], name)):
        have, may = now[name], rows.get(name, NONE)
        grown = f"{over[name]['lines']:+d}" if over[name]["lines"] else ""
        print(f"{name:28}{have['lines']:8}{may['lines']:8}{grown:>8}{have['files']:8}{may['files']:8}")
    print("\nwhere the house must come to:")
    for top, aim in table["aims"].items():
        total = {kind: sum(row[kind] for name, row in now.items() if name.split("/")[0] == top) for kind in KINDS}
        print(f"{top:28}" + ", ".join(f"{total[kind]} of {most} {kind}" for kind, most in aim.items()))

    wrong = [
        f"{name} has {now[name][kind]} {kind}, {more} too many: shrink it, or raise its row in {TABLE} by an ADR"
        for name, row in over.items()
        for kind, more in row.items()
        if more > 0
    ]
    told = "\n".join(path.read_text() for path in (ROOT / "docs" / "adr").glob("*.md"))
    wrong += [
        f"a row of {TABLE} was raised: no file in docs/adr has the line `{step}`"
        for step in raises()
        if not re.search(rf"^{re.escape(step)}$", told, re.MULTILINE)
    ]
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
