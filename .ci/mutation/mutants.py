"""Mutants of a contract: one place of one line changed. And the reasons for those that may survive."""

import dataclasses
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
JUSTIFIED = Path(__file__).with_name("mutants.txt")

# Packages that contracts import, by a remapping to node_modules.
PACKAGES = "@openzeppelin/"
IMPORT = re.compile(r'^(?:import|\}) ?[^;"]*"([^"]+)";', re.M)

# Operators of Solidity and what is written instead.
SWAPS = {
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "<<": [">>"],
    ">>": ["<<"],
    "+": ["-"],
    "-": ["+"],
    "*": ["+"],
    "/": ["*"],
    "%": ["/"],
    "&": ["|"],
    "|": ["&"],
    "^": ["|"],
    "++": ["--"],
    "--": ["++"],
    "+=": ["-=", "="],
    "-=": ["+=", "="],
    "<<=": [">>="],
    ">>=": ["<<="],
    "!": [""],
    "~": [""],
}
# Functions of assembly likewise.
CALLS = {
    "lt": ["gt", "slt"],
    "gt": ["lt", "sgt"],
    "slt": ["sgt", "lt"],
    "sgt": ["slt", "gt"],
    "eq": ["sub"],
    "iszero": [""],
    "not": [""],
    "add": ["sub"],
    "sub": ["add"],
    "mul": ["add"],
    "div": ["mod"],
    "mod": ["div"],
    "and": ["or"],
    "or": ["and", "xor"],
    "xor": ["or"],
    "shl": ["shr"],
    "shr": ["shl", "sar"],
    "sar": ["shr"],
    "mstore": ["mstore8"],
    "mstore8": ["mstore"],
}
# `lt(x, y)` and not `x <= y`: the negation of the other comparison.
OPPOSITE = {"lt": "gt", "gt": "lt", "slt": "sgt", "sgt": "slt"}
OPERATOR = re.compile(r"<<=|>>=|=>|->|:=|<=|>=|==|!=|&&|\|\||<<|>>|\+\+|--|\+=|-=|[-+*/%&|^<>!~]")
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-fA-F]+|\d+)(?![\w.])")
CALL = re.compile(r"(?<![\w.])(\w+)\(")
# Statements that leave something that compiles when they are gone.
STATEMENT = re.compile(
    r"^\s*(?!return\b|let\b|for\b|while\b|import\b|using\b|u?int\d*\s|bytes\d*\s|bool\s|error\b|event\b)[\w({].*;\s*$"
)
SKIPPED = re.compile(
    r"^\s*(//|/\*|\*|import\b|pragma\b|using\b|error\b|event\b|assembly\b|library\b|contract\b|function\b)"
)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One changed line of a file; `number` counts from 1."""

    path: str
    number: int
    before: str
    after: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Path, original and mutant, as in mutants.txt."""
        return self.path, self.before.strip(), self.after.strip()

    def applied(self, text: str) -> str:
        """The file with this line changed."""
        lines = text.splitlines()
        lines[self.number - 1] = self.after
        return "\n".join(lines) + "\n"


def code_length(line: str) -> int:
    """Where a comment begins, or the end of the line."""
    comment = line.find("//")
    return len(line) if comment < 0 else comment


def closing(text: str, opening: int) -> int:
    """Position of the parenthesis that closes the one at `opening`, or -1 if it is on another line."""
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return -1


def variants(line: str) -> Iterator[str]:
    """Every changed form of one line."""
    end = code_length(line)
    code, comment = line[:end], line[end:]
    for found in OPERATOR.finditer(code):
        for other in SWAPS.get(found.group(), ()):
            yield code[: found.start()] + other + code[found.end() :] + comment
    for found in NUMBER.finditer(code):
        if re.search(r"\b(uint|int|bytes)$", code[: found.start()]):
            continue
        text = found.group()
        number = int(text, 16 if text.startswith("0x") else 10)
        for value in {number + 1, number - 1, number * 2}:
            if value >= 0 and value != number:
                width = len(text) if text.startswith("0") else 0  # also hex"0100"
                written = f"{value:#0{width}x}" if text.startswith("0x") else f"{value:0{width}}"
                yield code[: found.start()] + written + code[found.end() :] + comment
    for found in CALL.finditer(code):
        for other in CALLS.get(found.group(1), ()):
            yield code[: found.start()] + other + code[found.end() - 1 :] + comment
        last = closing(code, found.end() - 1)
        if found.group(1) in OPPOSITE and last > 0:
            arguments = code[found.end() : last]
            yield f"{code[: found.start()]}iszero({OPPOSITE[found.group(1)]}({arguments})){code[last + 1 :]}{comment}"
    for found in re.finditer(r"\b(if|while) \(", code):
        last = closing(code, found.end() - 1)
        if last > 0:
            yield f"{code[: found.end()]}!({code[found.end() : last]}){code[last:]}{comment}"
    for found in re.finditer(r"\b(true|false)\b", code):
        yield code[: found.start()] + {"true": "false", "false": "true"}[found.group()] + code[found.end() :] + comment
    if (
        STATEMENT.match(code)
        or re.match(r"^\s*\w+ := .*[^{]$", code)
        or re.match(r"^\s*m(store8?|copy)\(.*\)\s*$", code)
    ):
        yield re.match(r"\s*", code)[0] + comment  # type: ignore[index]  # matches every line
    found_branch = re.match(r"^(\s*if .*)\{ (.*) \}\s*$", code)
    if found_branch:
        yield found_branch[1] + "{ }" + comment


def mutants(path: str) -> list[Mutant]:
    """All mutants of a file, without repetitions."""
    found = {}
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        if SKIPPED.match(line) or not line.strip():
            continue
        for after in variants(line):
            if after.strip() != line.strip():
                found[number, after] = Mutant(path, number, line, after)
    return list(found.values())


def closure(paths: list[str]) -> set[str]:
    """The files and everything that they import, relative to the root; packages are in node_modules."""
    seen: set[str] = set()
    todo = list(paths)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for target in IMPORT.findall((ROOT / path).read_text()):
            if target.startswith(PACKAGES):
                todo.append(f"node_modules/{target}")
            elif target.startswith("."):
                todo.append(posixpath.normpath(f"{posixpath.dirname(path)}/{target}"))
    return seen


def own(paths: list[str]) -> set[str]:
    """The closure without what is of a package."""
    return {path for path in closure(paths) if not path.startswith("node_modules/")}


def sources(paths: list[str]) -> dict[str, str]:
    """Path and text of all that a compiler without access to files has to be given."""
    return {path: (ROOT / path).read_text() for path in sorted(closure(paths))}


def justified() -> set[tuple[str, str, str]]:
    """Path, original and mutant of every survivor that has a reason."""
    blocks = re.findall(r"^(\S+): .+\n- (.*)\n\+ (.*)$", JUSTIFIED.read_text(), re.M)
    return {(path, before.strip(), after.strip()) for path, before, after in blocks}
