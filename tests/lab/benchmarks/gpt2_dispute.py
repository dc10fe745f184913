"""GPT-2 with 124 million parameters in the market: trained, verified, and four lies in one scalar taken to the court.

Each party is a process of its own with a disk of its own, and is killed in the middle of every dispute.
`PYTHONPATH=tests python -m lab.benchmarks.gpt2_dispute FILE` writes the figures, with every move, into a file.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from anvil_node import anvil_node
from lab.benchmarks.figure import ROOT, Figure, peak_memory
from lab.benchmarks.market_processes import AT_ANY_PRICE, Arena, connect, key
from node_snapshots import order
from pol.chain.deployments.deployment import Deployment
from pol.chain.desks.task_registry import Status
from pol.demo.lying_players import Lie, LyingExecutor, LyingTrace
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.position import Side
from pol.errors import OperationalError
from pol.execution.executor import Executor
from pol.graph.capture import Capture, Loop, capture
from pol.roles.party.execution_journal import forget_executions
from pol.roles.party.role import Role
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.submitter.submitter import Offer, Submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from pol.training.storage.party_database import PartyDatabase
from pol.training.task.task_document import LoadedTask

INTERVAL, STEPS, TOKENS = 20, 40, 256
STEP = 13
"""Of the drawn segment: the step that the verifier lies about."""
OFFER = Offer(STEPS, INTERVAL, draws=1, wei_per_work_unit=10**5)
LIES: Mapping[str, tuple[str, str]] = {
    "backward_contraction": ("backward.mm", ""),
    "layer_norm_statistic": ("forward.native_layer_norm", ".rstd"),
    "second_moment": ("update.transformer.h.5.mlp.c_fc.weight", ":exp_avg_sq"),
    "embedding_gradient": ("transformer.wpe.weight.grad", ""),
}
"""How the names of the nodes begin and end; the one in the middle is lied about."""
KINDS: Mapping[str, tuple[type[Role], Any]] = {
    "solver": (Solver, next_of_solver),
    "verifier": (Verifier, next_of_verifier),
    "whistleblower": (Whistleblower, next_of_whistleblower),
}
KILLED_AFTER = 2
"""Moves that a party makes before it is killed, while it prepares the next one."""
TURNS = 400


def gpt2() -> Capture:
    """Hugging Face's class at its own size, AdamW with clipping, one text of 256 tokens in a step."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(config)
    texts = torch.randint(config.vocab_size, (64, TOKENS + 1))

    def loss(output: Any, after: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), after.flatten())

    order = (torch.arange(STEPS) % len(texts)).reshape(STEPS, 1)
    data = texts[:, :-1].contiguous(), texts[:, 1:].contiguous()
    return capture(model, loss, torch.optim.AdamW(model.parameters(), 1e-4), data, order, Loop(clip_norm=1.0))


class NodeLiar(Verifier):
    """A verifier that flips a bit in the middle of one node, and defends it."""

    topic = ""

    def executor(self, task_id: bytes, task: LoadedTask, segment: int) -> Executor:
        """Canonical, but for the lie."""
        honest = super().executor(task_id, task, segment)
        return LyingExecutor(task.program, task.constants, honest, self._lie(task, segment), threads=0)

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """The execution that the lie belongs to."""
        task = self.task(task_id)
        return LyingTrace(super().execute(task_id, segment), self._lie(task, segment), threads=0)

    def rest(self) -> None:
        """Its execution stays: no disk remembers a lie."""

    def _lie(self, task: LoadedTask, segment: int) -> Lie:
        begins, ends = LIES[self.topic]
        named = [
            n for n, node in enumerate(task.names.nodes) if node.name.startswith(begins) and node.name.endswith(ends)
        ]
        number = named[len(named) // 2]
        node = task.program.nodes[number]
        step = segment * INTERVAL + STEP
        return Lie(step, number, node.type.numel // 8, node.terms // 2, len(node.body.instructions) - 1, bit=21)


@dataclass(frozen=True)
class Life:
    """A party of the market as a process: its kind, its places, and the node that it lies about."""

    kind: str
    url: str
    deployment: str
    store_url: str
    evidence: str
    lie: str = ""

    def role(self) -> Role:
        """The party."""
        deployment, where = Deployment.from_json(self.deployment), Path(self.evidence)
        kind = NodeLiar if self.lie else KINDS[self.kind][0]
        role = kind(connect(self.url), deployment, key(self.kind), self.store_url, evidence=where)
        if isinstance(role, NodeLiar):
            role.topic = self.lie
        if isinstance(role, Whistleblower):
            role.strategy = AT_ANY_PRICE
        return role


@dataclass(frozen=True)
class Turn:
    """What a party did in a turn: verbs, the second until which it waits, its seconds and the peak of its memory."""

    done: list[str]
    waits: list[int]
    problems: list[str]
    seconds: float
    peak: float


class Party:
    """A process of a party, which takes a turn when it is told to."""

    def __init__(self, life: Life) -> None:
        self.life, self.moves, self.kills = life, 0, 0
        self._process = self._begun()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def turn(self) -> Turn:
        """One turn.

        Raises:
            OperationalError: the process has ended.
        """
        self._say("turn")
        assert self._process.stdout is not None  # it is a pipe
        line = self._process.stdout.readline()
        if not line:
            raise OperationalError(f"the {self.life.kind} has ended with code {self._process.wait()}")
        return Turn(**json.loads(line))

    def killed(self, seconds: float) -> None:
        """Begin a turn, kill the process in the middle of it, and begin it anew."""
        self._say("turn")
        time.sleep(seconds)
        self._process.kill()
        self._process.wait()
        self.kills += 1
        self._process = self._begun()

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None  # it is a pipe
        print(word, file=self._process.stdin, flush=True)

    def _begun(self) -> subprocess.Popen[str]:
        return _child("party", json.dumps(asdict(self.life)), stdin=subprocess.PIPE)


def _child(*arguments: str, stdin: int | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lab.benchmarks.gpt2_dispute", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.Popen(command, env=environment, stdin=stdin, stdout=subprocess.PIPE, text=True)


def _live(life: Life) -> None:
    """Take turns as they are asked for."""
    role, decide = life.role(), KINDS[life.kind][1]
    process = Process(role, decide)
    for _ in sys.stdin:
        Path("/proc/self/clear_refs").write_text("5")
        began = time.monotonic()
        taken = process.turn()
        done = [made.verb for made in taken if made.result is DecisionResult.DONE]
        waits = [made.until for made in taken if made.until is not None and made.result is not DecisionResult.DONE]
        good = {DecisionResult.DONE, DecisionResult.WAITED}
        problems = [f"{made.verb}: {made.why}: {made.detail}" for made in taken if made.result not in good]
        print(json.dumps(asdict(Turn(done, waits, problems, time.monotonic() - began, peak_memory()))), flush=True)


def _submit(life: Life) -> None:
    """Capture the model and offer the task."""
    began = time.monotonic()
    captured = gpt2()
    seconds, peak = time.monotonic() - began, peak_memory()
    submitter = Submitter(connect(life.url), Deployment.from_json(life.deployment), key("submitter"), life.store_url)
    task_id = submitter.submit(captured, OFFER)
    done = {"task": task_id.hex(), "capture_seconds": seconds, "capture_peak": peak}
    print(json.dumps(done | {"submit_seconds": time.monotonic() - began - seconds, "submit_peak": peak_memory()}))


class Trial:
    """The market with its parties, and what they did."""

    def __init__(self, url: str, folder: Path) -> None:
        self.connection, self._folder = connect(url), folder
        self._url, self._arena = url, Arena(self.connection, folder / "store")
        for kind in (Submitter, Solver, Verifier, Whistleblower):
            self._arena.join(kind, kind.__name__.lower())
        self.acts: list[dict[str, Any]] = []

    def life(self, kind: str, lie: str = "") -> Life:
        """A party of this market."""
        places = self._arena.deployment.to_json(), self._arena.store_url, str(self._folder / kind)
        return Life(kind, self._url, *places, lie)

    def submitted(self) -> tuple[bytes, dict[str, Any]]:
        """The task that the submitter offers, and what that took."""
        with _child("submit", json.dumps(asdict(self.life("submitter")))) as child:
            out, _ = child.communicate()
        if child.returncode:
            raise OperationalError("the submitter's process failed")
        found = json.loads(out.splitlines()[-1])
        return bytes.fromhex(found["task"]), found

    def live(self, parties: Sequence[Party], over: Callable[[], bool], kills: bool = False) -> None:
        """Turns until it is over; if all wait, time passes."""
        for _ in range(TURNS):
            if over():
                return
            turns = [self._turn(party, kills) for party in parties]
            untils = [until for turn in turns for until in turn.waits]
            if not any(turn.done for turn in turns) and untils:
                self.connection.wait_until(min(untils))
        raise OperationalError(f"not over after {TURNS} turns: {self.acts[-8:]}")

    def _turn(self, party: Party, kills: bool) -> Turn:
        if kills and party.moves == KILLED_AFTER and not party.kills:
            party.killed(2.0)
        turn = party.turn()
        party.moves += turn.done.count("move")
        if turn.done or turn.problems or turn.seconds > 1.0:
            self.acts.append({"party": party.life.kind, **asdict(turn)})
        return turn

    def trained(self, task_id: bytes) -> None:
        """The solver trains and commits its proof."""
        registry = self._arena.deployment.market(self.connection).registry
        begun = {Status.NONE, Status.BIDDING, Status.TRAINING}
        with Party(self.life("solver")) as solver:
            self.live([solver], lambda: registry.task(task_id).status not in begun)

    def disputed(self, task_id: bytes, lie: str) -> dict[str, Any]:
        """A verdict with a lie, and its dispute to the settlement."""
        before, first = order(self.connection, "evm_snapshot"), len(self.acts)
        # What the parties know of an earlier dispute would help them in this one.
        for kind in ("verifier", "whistleblower"):
            forget_executions(PartyDatabase(self._folder / kind), task_id)
        market = self._arena.deployment.market(self.connection)

        with Party(self.life("verifier", lie)) as verifier, Party(self.life("whistleblower")) as whistleblower:
            parties = [verifier, whistleblower]
            self.live(parties, lambda: bool(market.challenges.disputes(task_id)))
            began = time.monotonic()
            number, block = market.challenges.disputes(task_id)[0], self.connection.web3.eth.block_number
            self.live(parties, lambda: market.challenges.dispute(number).is_settled, kills=True)
            seconds = time.monotonic() - began
            kills = [party.kills for party in parties]
        if market.game.winner(number) is not Side.CHALLENGER or kills != [1, 1]:
            raise OperationalError(f"the lie about {lie} won, or nobody was killed: {kills}")
        sent = self._sent(block)
        order(self.connection, "evm_revert", before)
        return {"seconds": seconds, "acts": self.acts[first:], "sent": sent}

    def _sent(self, first: int) -> list[tuple[int, int]]:
        """Bytes of calldata and gas of each transaction from a block on."""
        eth, found = self.connection.web3.eth, list[tuple[int, int]]()
        for number in range(first, eth.block_number + 1):
            for each in eth.get_block(number)["transactions"]:
                assert isinstance(each, bytes), "blocks name their transactions"
                found.append((len(eth.get_transaction(each)["input"]), eth.get_transaction_receipt(each)["gasUsed"]))
        return found


def gpt2_figures() -> dict[str, Figure]:
    """All figures; some 25 minutes and 25 GB of disk."""
    with tempfile.TemporaryDirectory() as folder, anvil_node(hardfork="osaka") as url:
        trial = Trial(url, Path(folder))
        task_id, submitted = trial.submitted()
        began = time.monotonic()
        trial.trained(task_id)
        trained, solving = time.monotonic() - began, list(trial.acts)
        disputes = {lie: trial.disputed(task_id, lie) for lie in LIES}
    acts = [act for found in disputes.values() for act in found["acts"]]
    moves = [act for act in acts if "move" in act["done"]]
    honest = [act for act in acts if act["party"] == "whistleblower"]
    figures = {
        "gpt2_capture_seconds": Figure(submitted["capture_seconds"], "s, with the self-check"),
        "gpt2_capture_memory": Figure(submitted["capture_peak"] / 1e9, "GB"),
        "gpt2_submit_seconds": Figure(submitted["submit_seconds"], "s"),
        "gpt2_training_seconds": Figure(trained, f"s, {STEPS} steps and the proof"),
        "gpt2_training_memory": Figure(max(act["peak"] for act in solving) / 1e9, "GB"),
        "gpt2_dispute_seconds": Figure(
            max(found["seconds"] for found in disputes.values()), "s, the longest of four, two kills in each"
        ),
        "gpt2_peak_memory": Figure(max(act["peak"] for act in honest) / 1e9, "GB, of the honest party"),
        "gpt2_dispute_gas": Figure(
            max(sum(gas for _, gas in found["sent"]) for found in disputes.values()), "gas, challenge to settlement"
        ),
        "gpt2_largest_move": Figure(
            max(size for found in disputes.values() for size, _ in found["sent"]), "bytes of calldata"
        ),
        "gpt2_longest_move": Figure(
            max(act["seconds"] for act in moves if act["party"] == "whistleblower"), "s, with a restart"
        ),
    }
    return figures | {f"gpt2_{lie}_seconds": Figure(found["seconds"], "s") for lie, found in disputes.items()}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["party", life]:
            _live(Life(**json.loads(life)))
        case ["submit", life]:
            _submit(Life(**json.loads(life)))
