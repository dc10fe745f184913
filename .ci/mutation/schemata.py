"""Many mutants of a file in one contract.

Each is a copy of the function that it changes, and the block's coinbase says which copy runs. So the compiler runs
once for many mutants, and so does forge, which has a test for each number: it calls one test of the suite after the
other until one fails. A constant that only one function reads is copied with that function. What else is not in a
function is looked at alone.
"""

import random
import re
from collections.abc import Sequence
from typing import Any

from eth_abi.abi import encode
from eth_utils import keccak
from mutants import Mutant, code_length

# Numbers from 1; without a number all is as it was.
TOGETHER = 60
SWITCH = "Mutation.sol"
SWITCH_TEXT = """// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

function isMutated(uint256 mutant) view returns (bool yes) {
    assembly {
        yes := eq(coinbase(), mutant)
    }
}
"""
# Gas of one test: mutants that loop for ever end here.
GAS = 500_000_000

CONSTANT = re.compile(r"^    \w+ private constant (\w+) = [^;]*;")

# A function: its first line, that of its opening brace and its last, from 0.
Place = tuple[int, int, int]

# Draws of arguments for a test that takes some.
DRAWS = 4

SUITE = """// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {{{name}}} from "./{file}";

interface World {{
    function coinbase(address who) external;
    function snapshotState() external returns (uint256);
    function revertToState(uint256 snapshot) external returns (bool);
}}

contract {name}Many is {name} {{
    function _all(uint160 number) private {{
        World world = World(address(vm));
        bytes[] memory tests = _tests();
        for (uint256 i = 0; i < tests.length; ++i) {{
            uint256 before = world.snapshotState();
            world.coinbase(address(number));
            this.clean();
            (bool isFine,) = address(this).call{{gas: {gas}}}(tests[i]);
            require(isFine);
            require(world.revertToState(before));
        }}
    }}

    /// @dev Of what the test before it has left, where it has left it: one call further down.
    function clean() external {{
        vm.stopPrank();
    }}

    function _tests() private pure returns (bytes[] memory tests) {{
        tests = new bytes[]({count});
{calls}
    }}

{tests}
}}
"""


def drawn(kind: str, rng: random.Random) -> Any:
    """A value of a type as the coder of the ABI takes it."""
    array = re.match(r"(.*)\[(\d+)\]$", kind)
    if array:
        return [drawn(array[1], rng) for _ in range(int(array[2]))]
    number = re.match(r"(u?)int(\d+)$", kind)
    if number:
        bits = int(number[2])
        value = rng.getrandbits(rng.choice((bits, 8)))
        return value if number[1] else value - 2 ** (bits - 1)
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "address":
        return rng.randbytes(20)
    return rng.randbytes(rng.randrange(100) if kind == "bytes" else int(kind.removeprefix("bytes")))


def suite(file: str, text: str, skipped: str) -> tuple[str, str]:
    """Name and text of a contract that runs all tests of a suite, but those that `skipped` matches, for each number."""
    (name,) = re.findall(r"^contract (\w+)[^{]*\{(?=(?:(?!^contract ).)*?^    function test)", text, re.M | re.S)
    rng = random.Random(0)
    calls = []
    tests = re.findall(r"^    function (test\w+)\(([^)]*)\)", text, re.M)
    # Those without arguments first: most are quick.
    for test, parameters in sorted(tests, key=lambda found: found[1] != ""):
        kinds = [parameter.split()[0] for parameter in parts(parameters)]
        selector = keccak(text=f"{test}({','.join(kinds)})")[:4]
        for _ in range(0 if re.search(skipped, test) else DRAWS if kinds else 1):
            calls.append(selector + encode(kinds, [drawn(kind, rng) for kind in kinds]))
    content = SUITE.format(
        name=name,
        file=file,
        gas=GAS,
        count=len(calls),
        calls="\n".join(f'        tests[{n}] = hex"{call.hex()}";' for n, call in enumerate(calls)),
        tests="\n".join(f"    function test_mutant_{n}() external {{ _all({n}); }}" for n in range(TOGETHER + 1)),
    )
    return f"{name}Many", content


def viewing(text: str) -> str:
    """The source with functions that may look at the block."""
    return re.sub(r"\bpure\b", "view", text)


def functions(lines: list[str]) -> dict[int, Place]:
    """For each line of a function's body where the function stands."""
    found = {}
    at = 0
    while at < len(lines):
        head = re.match(r"( {4})?function \w+\(", lines[at])
        if not head:
            at += 1
            continue
        indent = head[1] or ""
        opening = next(n for n in range(at, len(lines)) if lines[n].rstrip().endswith(("{", "}", ";")))
        if not lines[opening].rstrip().endswith("{"):
            at = opening + 1
            continue
        last = next(n for n in range(opening, len(lines)) if lines[n].rstrip() == indent + "}")
        found.update(dict.fromkeys(range(opening + 1, last), (at, opening, last)))
        at = last + 1
    return found


def parts(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def copied(header: str, name: str, number: int) -> tuple[str, str] | None:
    """Header of the copy, and the call of it in the original; None if a parameter has no name."""
    found = re.match(r"\s*function (\w+)\(([^)]*)\)(.*?)(?:returns\s*\(([^)]*)\)\s*)?\{\s*$", header, re.S)
    assert found, header
    parameters, rest, results = parts(found[2]), found[3], found[4]
    if any(len(parameter.split()) < 2 for parameter in parameters):
        return None
    visibility = "" if not header.startswith(" ") else "internal " if re.search(r"\binternal\b", rest) else "private "
    mutability = "view " if re.search(r"\b(view|pure)\b", rest) else ""
    returns = f"returns ({results}) " if results else ""
    call = f"{name}({', '.join(parameter.split()[-1] for parameter in parameters)});"
    call = f"return {call}" if results else f"{{ {call} return; }}"
    head = f"function {name}({', '.join(parameters)}) {visibility}{mutability}{returns}{{"
    return head, f"if (isMutated({number})) {call}"


def renamed(lines: list[str], name: str, number: int) -> list[str]:
    """The lines with another name of a constant."""
    return [re.sub(rf"\b{name}\b", f"{name}_{number}", line) for line in lines]


def user(lines: list[str], where: dict[int, Place], mutant: Mutant, name: str) -> Place | None:
    """The only function that reads a constant; None if others do, or something that is no function."""
    uses = [n for n, line in enumerate(lines) if re.search(rf"\b{name}\b", line[: code_length(line)])]
    places = {where.get(n) for n in uses if n != mutant.number - 1}
    return places.pop() if len(places) == 1 else None


def copy_of(lines: list[str], mutant: Mutant, number: int) -> tuple[Place, str, list[str]] | None:
    """Where a mutant's function stands, the call of its copy and the copy; None if it has to be looked at alone."""
    where = functions(lines)
    constant = CONSTANT.match(mutant.before)
    place = user(lines, where, mutant, constant[1]) if constant else where.get(mutant.number - 1)
    if place is None:
        return None
    first, opening, last = place
    match = re.match(r"\s*function (\w+)", lines[first])
    assert match
    copy = copied("\n".join(lines[first : opening + 1]), f"{match[1]}_{number}", number)
    if copy is None:
        return None
    head, call = copy
    body = lines[opening + 1 : last + 1]
    if constant:
        return place, call, [*renamed([mutant.after], constant[1], number), head, *renamed(body, constant[1], number)]
    body[mutant.number - 2 - opening] = mutant.after
    return place, call, [head, *body]


def combined(text: str, mutants: Sequence[Mutant]) -> tuple[str, list[Mutant], list[tuple[int, int, Mutant]]]:
    """The file with many mutants; those that it has, by their numbers from 1; and between which bytes each stands."""
    lines = text.splitlines()
    inserted: dict[int, list[str]] = {}
    after: dict[int, list[tuple[str, Mutant]]] = {}
    taken: list[Mutant] = []
    for mutant in mutants:
        copy = copy_of(lines, mutant, len(taken) + 1)
        if copy is None:
            continue
        (_, opening, last), call, changed = copy
        taken.append(mutant)
        inserted.setdefault(opening, []).append(call)
        after.setdefault(last, []).append(("\n".join(changed), mutant))
    result = b""
    places = []
    for n, line in enumerate(lines):
        result += "\n".join([viewing(line), *inserted.get(n, ())]).encode() + b"\n"
        for content, mutant in after.get(n, ()):
            begin = len(result)
            result += viewing(content).encode() + b"\n"
            places.append((begin, len(result), mutant))
    pragma = re.search(rb"^pragma [^\n]*\n", result, re.M)
    assert pragma
    switch = f'import {{isMutated}} from "{SWITCH}";\n'.encode()
    result = result[: pragma.end()] + switch + result[pragma.end() :]
    places = [(begin + len(switch), end + len(switch), mutant) for begin, end, mutant in places]
    return result.decode(), taken, places
