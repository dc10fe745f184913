"""Mutants that tests deploy: compiled unoptimized, in the place of the artefacts or harnesses that the tests create.

Only the contracts that contain the changed file are compiled, by a compiler that stays loaded, and no test is: what a
test calls as a library is as it was. Ceilings of gas do not hold without the optimizer and are left out. `OneStep`
needs the new code generator for its gas only: without the optimizer the old one compiles it, twenty times as fast.
"""

import dataclasses
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import schemata
from mutants import ROOT, Mutant, closure, justified, own, sources

sys.path.append(str(ROOT / ".ci"))

import artifacts

COURTS = ROOT / "build" / "audit" / "courts"
FORGE = ROOT / "node_modules" / "@foundry-rs" / "forge-linux-amd64" / "bin" / "forge"


@dataclasses.dataclass(frozen=True)
class Stage:
    """Tests that answer for a file, and the contracts by whose names they deploy it, as `PATH:NAME`.

    Tests are named below tests/forge; those that notice most come first.
    """

    contracts: tuple[str, ...]
    tests: tuple[str, ...]


def court(*tests: str) -> Stage:
    """Games over the toy program; `OneStep` is the committed one."""
    contracts = ("contracts/dispute/DisputeGame.sol:DisputeGame", "contracts/dispute/Starts.sol:Starts")
    return Stage(contracts, tuple(f"dispute/{name}.t.sol" for name in tests))


def harness(test: str, name: str, *more: str) -> Stage:
    """A contract in the file of a test, which the test creates."""
    return Stage((f"tests/forge/{test}.t.sol:{name}",), tuple(f"{file}.t.sol" for file in (test, *more)))


GAME = court("Clock", "SubtreeMoves", "Relay", "StepMoves", "Turns", "DisputeGame", "Attacks")
PUBLISHED = court("PublishedTrace")
STEP = Stage(
    ("contracts/dispute/OneStep.sol:OneStep",),
    tuple(f"dispute/{name}.t.sol" for name in ("OneStep", "Operands", "Instructions", "Sum", "Chunk")),
)
DEEP = harness("dispute/Deep", "DeepWalker")
WALK = harness("dispute/Transition", "Walker")
PAYLOADS = harness("dispute/MovePayload", "MovePayloadHarness")
PICKS = harness("dispute/PickedPart", "PickedPartHarness")
OPENING = harness("dispute/Opening", "OpeningsReader")
FRAMES = harness("dispute/FrameHash", "FactsReader")
VAULT = Stage(
    ("contracts/incentives/StakeVault.sol:StakeVault",),
    tuple(f"incentives/Vault{name}.t.sol" for name in ("Duty", "Money", "Token", "Relay", "Deployment")),
)
AUCTION = Stage(
    ("contracts/incentives/Auction.sol:Auction",),
    tuple(
        f"incentives/{name}.t.sol"
        for name in (
            "AuctionReveal",
            "AuctionConclude",
            "AuctionBid",
            "AuctionOpen",
            "ThroughputLimit",
            "AuctionVectors",
        )
    ),
)
CHANCE = Stage(
    (
        "contracts/incentives/Sortition.sol:Sortition",
        "contracts/incentives/Jackpot.sol:Jackpot",
        "tests/forge/incentives/SeatingDesk.sol:SeatingDesk",
    ),
    tuple(f"incentives/{name}.t.sol" for name in ("Jackpot", "Sortition", "JackpotFailures", "LotteryVectors")),
)
DESK = Stage(("tests/forge/incentives/PlainDesk.sol:PlainDesk",), ("incentives/Desk.t.sol",))

FOLDER = "contracts/dispute/"
# What survives one stage goes on to the next.
FILES = {
    FOLDER + "Chunk.sol": (STEP,),
    FOLDER + "Clock.sol": (GAME, PUBLISHED),
    FOLDER + "ClockExpiry.sol": (GAME,),
    FOLDER + "Descriptor.sol": (harness("dispute/Descriptor", "DescriptorHarness"), STEP, GAME, PUBLISHED),
    FOLDER + "DisputeStorage.sol": (GAME,),
    FOLDER + "DisputeGame.sol": (GAME,),
    FOLDER + "Distance.sol": (harness("dispute/DistanceVectors", "DistanceHarness"), STEP),
    FOLDER + "FrameHash.sol": (FRAMES, PUBLISHED),
    FOLDER + "OneStep.sol": (STEP,),
    FOLDER + "Opening.sol": (STEP, OPENING),
    FOLDER + "Operands.sol": (STEP,),
    FOLDER + "MovePayload.sol": (PAYLOADS, GAME, PUBLISHED),
    FOLDER + "PickedPart.sol": (PICKS, GAME),
    FOLDER + "Position.sol": (GAME, PUBLISHED),
    FOLDER + "PublishedTrace.sol": (PUBLISHED,),
    FOLDER + "PackedReader.sol": (STEP, FRAMES, GAME, PUBLISHED),
    FOLDER + "StepMoves.sol": (GAME,),
    FOLDER + "Starts.sol": (GAME, PUBLISHED),
    FOLDER + "SubtreeMoves.sol": (GAME,),
    FOLDER + "Transition.sol": (DEEP, WALK, GAME),
    "contracts/incentives/Auction.sol": (AUCTION,),
    "contracts/incentives/AuctionRules.sol": (AUCTION,),
    "contracts/incentives/Desk.sol": (DESK,),
    "contracts/incentives/ForcedErrors.sol": (CHANCE,),
    "contracts/incentives/Jackpot.sol": (CHANCE,),
    "contracts/incentives/Ranks.sol": (CHANCE,),
    "contracts/incentives/Sortition.sol": (CHANCE,),
    "contracts/incentives/StakeVault.sol": (VAULT,),
    "contracts/incentives/ThroughputLimit.sol": (AUCTION,),
}
CREATED = r"new ({names})\(((?:[^()]|\([^()]*\))*)\)"
CEILINGS = "less_than_.*_gas|hostile"
NAME = re.compile(r'"(\w+)\.sol:\1"')
# Seconds, of which the tests take one to five on an idle core.
LIMIT = 120


def by_name(created: re.Match[str]) -> str:
    """A contract that is created, with its arguments if there are any, as one that is deployed by its name."""
    name, arguments = created.groups()
    encoded = f", abi.encode({arguments})" if arguments else ""
    return f'{name}(vm.deployCode("{name}.sol:{name}"{encoded}))'


def remove(path: Path) -> None:
    """Whatever is there, if anything."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Court:
    """A copy of the tests of a stage, and the compiler that makes what they deploy."""

    def __init__(self, path: str, stage: Stage) -> None:
        """Copy the tests, compile what has changed since the last time and run them once; exits if they fail."""
        directory = self.directory = COURTS / "-".join(
            sorted(Path(name).name.partition(".")[0] for name in stage.tests)
        )
        for part in ("contracts", "tests", "pol", "node_modules", "fixtures"):
            remove(directory / part)
        self.settings = artifacts.settings(artifacts.profile(), ())
        self.settings["optimizer"]["enabled"] = False
        self.contracts = [name for name in stage.contracts if path in closure([name.split(":")[0]])]
        tests = [f"tests/forge/{name}" for name in stage.tests]
        created = CREATED.format(names="|".join(name.split(":")[1] for name in stage.contracts))
        for name in [*own(tests), ".ci/solc", "foundry.toml"]:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)
            if name.startswith("tests/"):
                text = re.sub(created, by_name, (ROOT / name).read_text())
                (directory / name).write_text(NAME.sub(r'"pol/chain/artifacts/\1.json"', text))
        self.suites = []
        for name in tests:
            file = directory / name
            suite, content = schemata.suite(file.name, (ROOT / name).read_text(), CEILINGS)
            file.with_name(f"{suite}.t.sol").write_text(content)
            self.suites.append(suite)
        shutil.copytree(artifacts.ARTIFACTS, directory / "pol" / "chain" / "artifacts")
        for name in ("node_modules", "fixtures"):
            (directory / name).symlink_to((ROOT / name).resolve())
        self.compiler = subprocess.Popen(
            ["node", Path(__file__).with_name("compile.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.usual = {contract: self.code(contract, {}) for contract in self.contracts}
        for contract, code in self.usual.items():
            self.install(contract, code)
        # All at once: a run compiles only what it needs.
        subprocess.run([FORGE, "build"], cwd=directory, capture_output=True, check=True)
        done = self.run(600)
        if done is None or done.returncode:
            sys.exit(f"the tests fail before any mutation\n{done.stdout[-3000:] if done else ''}")

    def close(self) -> None:
        """End the compiler."""
        assert self.compiler.stdin
        self.compiler.stdin.close()
        self.compiler.wait()

    def compiled(self, contract: str, sources: dict[str, str]) -> str | list[dict[str, Any]]:
        """The bytecode of a contract, or the errors."""
        path, name = contract.split(":")
        self.settings["outputSelection"] = {path: {name: ["evm.bytecode.object"]}}
        content = {name: {"content": text} for name, text in sorted(sources.items())}
        request = {"language": "Solidity", "sources": content, "settings": self.settings}
        assert self.compiler.stdin
        assert self.compiler.stdout
        self.compiler.stdin.write(json.dumps(request) + "\n")
        self.compiler.stdin.flush()
        output: dict[str, Any] = json.loads(self.compiler.stdout.readline())
        errors = [message for message in output.get("errors", ()) if message["severity"] == "error"]
        return errors or f"0x{output['contracts'][path][name]['evm']['bytecode']['object']}"

    def code(self, contract: str, changed: dict[str, str]) -> str | None:
        """The bytecode of a contract with some files changed; None if it does not compile."""
        code = self.compiled(contract, sources([contract.partition(":")[0]]) | changed)
        return code if isinstance(code, str) else None

    def combined(self, todo: list[Mutant]) -> tuple[list[Mutant], set[Mutant], dict[str, str]]:
        """Mutants that compile together, those that do not compile, and the bytecode of contracts with the former."""
        stillborn: set[Mutant] = set()
        while todo:
            text, todo, places = schemata.combined((ROOT / todo[0].path).read_text(), todo)
            codes: dict[str, str] = {}
            for contract in self.contracts if todo else ():
                usual = sources([contract.partition(":")[0]])
                texts = {name: schemata.viewing(content) for name, content in usual.items()}
                code = self.compiled(contract, texts | {todo[0].path: text, schemata.SWITCH: schemata.SWITCH_TEXT})
                if not isinstance(code, str):
                    broken = set()
                    for error in code:
                        start = error.get("sourceLocation", {}).get("start", -1)
                        found = {m for begin, end, m in places if begin <= start < end}
                        broken |= found
                        # Another error is one of the compiler's own limits, which may be due to the many copies.
                        if error["type"] in ("DeclarationError", "ParserError", "SyntaxError", "TypeError"):
                            stillborn |= found
                    # Without a place that is one of theirs: half of them may do.
                    todo = [m for m in todo if m not in broken] if broken else todo[: len(todo) // 2]
                    break
                codes[contract] = code
            else:
                return todo, stillborn, codes
        return [], stillborn, {}

    def together(self, todo: list[Mutant]) -> dict[str, set[Mutant]]:
        """What becomes of those mutants that fit in one contract: killed, stillborn or survives."""
        todo, stillborn, codes = self.combined(todo)
        for contract, code in codes.items():
            self.install(contract, code)
        left = dict(enumerate(todo, 1))
        for suite in self.suites:
            if not left:
                break
            numbers = "|".join(str(n) for n in (0, *left))
            options = ["--json", "--threads", "1", "--allow-failure", "--match-contract", f"^{suite}$"]
            options += ["--match-test", rf"^test_mutant_({numbers})\(", "--gas-limit", str(2**63)]
            done = subprocess.run(
                [FORGE, "test", *options], cwd=self.directory, capture_output=True, text=True, check=False
            )
            start = done.stdout.find('{"tests/')
            results = json.loads(done.stdout[start:].splitlines()[0]) if start >= 0 else {}
            states = {
                name: result["status"]
                for (part,) in [results.values()]
                for name, result in part["test_results"].items()
            }
            if states.get("test_mutant_0()") != "Success":
                sys.exit(f"{suite} fails before any mutation\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
            left = {n: mutant for n, mutant in left.items() if states[f"test_mutant_{n}()"] == "Success"}
        for contract in codes:
            self.install(contract, self.usual[contract])
        survivors = set(left.values())
        return {"killed": set(todo) - survivors, "stillborn": stillborn, "survives": survivors}

    def install(self, contract: str, code: str | None) -> None:
        """What the tests deploy from now on."""
        file = self.directory / "pol" / "chain" / "artifacts" / f"{contract.split(':')[1]}.json"
        artifact = json.loads(file.read_text()) if file.exists() else {"abi": []}
        file.write_text(json.dumps({**artifact, "bytecode": code}))

    def run(self, limit: float) -> subprocess.CompletedProcess[str] | None:
        """Run the tests up to the first failure; None if they take too long."""
        command = [
            str(FORGE),
            "test",
            "--fail-fast",
            "--threads",
            "1",
            "--no-match-path",
            "*/*Many*",
            "--no-match-test",
            CEILINGS,
        ]
        try:
            return subprocess.run(
                command, cwd=self.directory, capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return None

    def fate(self, mutant: Mutant, has_survived: bool) -> str:
        """What becomes of a mutant alone: killed, stillborn, equal or survives, which some have shown before."""
        changed = {mutant.path: mutant.applied((ROOT / mutant.path).read_text())}
        codes = {contract: self.code(contract, changed) for contract in self.contracts}
        if None in codes.values():
            return "stillborn"
        if codes == self.usual:
            return "equal"
        if has_survived:
            return "survives"
        for contract, code in codes.items():
            self.install(contract, code)
        done = self.run(LIMIT)
        for contract in codes:
            self.install(contract, self.usual[contract])
        if done and done.returncode and "[FAIL" not in done.stdout:
            sys.exit(f"the tests did not run with {mutant}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return "killed" if done is None or done.returncode else "survives"


def attack(path: str, todo: list[Mutant], end: float, checked: int = 0) -> dict[str, list[Mutant]]:
    """Run one mutant after the other until all have been run or the time is over; shows on stderr how far it is.

    So many of those that the first stage kills together are run alone as well; exits if one of them survives that.
    """
    fates: dict[str, list[Mutant]] = {name: [] for name in ("killed", "stillborn", "equal", "survives", "not run")}
    different: set[Mutant] = set()
    reasons = justified()
    for stage in FILES[path]:
        if not todo:
            break
        left = []
        deployed = Court(path, stage)
        alive: set[Mutant] = set()
        for first in range(0, len(todo), schemata.TOGETHER):
            if time.monotonic() < end:
                found = deployed.together(todo[first : first + schemata.TOGETHER])
                alive |= found["survives"]
                fates["killed"] += found["killed"]
                fates["stillborn"] += found["stillborn"]
                numbers = ", ".join(f"{len(mutants)} {fate}" for fate, mutants in found.items())
                print(f"{path}: {stage.tests[0]}, from {first}: {numbers}", file=sys.stderr, flush=True)
        # In the order in which they were drawn.
        killed = [mutant for mutant in todo if mutant in fates["killed"]]
        for mutant in killed[: checked if stage is FILES[path][0] else 0]:
            if deployed.fate(mutant, has_survived=False) != "killed":
                sys.exit(f"killed among others, not alone: {mutant}")
            print(f"{path}:{mutant.number} is killed alone, too", file=sys.stderr, flush=True)
        done = {*fates["killed"], *fates["stillborn"]}
        todo = [mutant for mutant in todo if mutant not in done]
        for mutant in todo:
            # Alone, ceilings of gas hold and `setUp` sees the mutant: those with a reason survive that, too.
            is_known = mutant in alive and mutant.key in reasons
            fate = deployed.fate(mutant, is_known) if time.monotonic() < end else "not run"
            if fate == "survives":
                different.add(mutant)
            if fate in ("survives", "equal"):
                left.append(mutant)
            else:
                fates[fate].append(mutant)
        deployed.close()
        todo = left
    for mutant in todo:
        fates["survives" if mutant in different else "equal"].append(mutant)
    return fates
