"""A market on a chain with one verdict about the toy program: the start of every dispute on chain."""

from __future__ import annotations

from dataclasses import dataclass

import toy
from eth_typing import ChecksumAddress

from pol.chain.connection import Connection
from pol.chain.deployment import Deployment, deploy
from pol.chain.game import DisputeGame
from pol.chain.market import TaskMarket, Terms
from pol.chain.wallet import Wallet
from pol.commitments.keccak import keccak256
from pol.commitments.log import CheckpointLog
from pol.commitments.program import program_hash, program_header
from pol.commitments.tensor import constants_root
from pol.dispute.claim import ReplayClaim, SumClaim
from pol.dispute.evidence import SegmentTrace
from pol.dispute.players import Player
from pol.dispute.position import Kind
from pol.execution.reference import ReferenceExecutor
from pol.verification.distance import component_distances
from pol.verification.profile_claim import EXACT
from pol.verification.verdict import Claim

INTERVAL, SEGMENTS = 20, 2
ETHER = 10**18
CLOCK = 3600
NAMES = ("submitter", "solver", "verifier", "whistleblower", "deployer")


@dataclass
class ToyMarket:
    """One task at its verdict."""

    connection: Connection
    deployment: Deployment
    market: TaskMarket
    game: DisputeGame
    wallets: dict[str, Wallet]
    task_id: bytes
    claim: Claim
    honest: SegmentTrace

    def challenge(self, player: Player, kind: Kind = Kind.REPLAY, component: int = 0) -> int:
        """The whistleblower disputes the claim with this player's version of it."""
        program, claim, header = self.honest.program, self.claim, program_header(self.honest.program)
        about: ReplayClaim | SumClaim
        if kind is Kind.REPLAY:
            constants = constants_root(program.constants, self.honest.constants)
            steps = (claim.segment * INTERVAL, INTERVAL)
            about = ReplayClaim(bytes(32), program_hash(program), constants, *steps, claim.start, claim.replay)
        else:
            other, sums = claim.end, claim.distances
            if kind is Kind.REFERENCE:
                other, sums = claim.start, claim.references
            states = (claim.replay, other)
            about = SumClaim(bytes(32), program_hash(program), component, *states, sums[component - 1])
        payload = player.open(about.first(header))
        whistleblower = self.wallets["whistleblower"]
        return self.market.challenge(whistleblower, self.task_id, 0, claim, kind, component, header, payload)


def fund(connection: Connection, *addresses: ChecksumAddress) -> None:
    """Ether from an account that the node unlocks."""
    rich = connection.web3.eth.accounts[0]
    for address in addresses:
        connection.web3.eth.send_transaction({"from": rich, "to": address, "value": 100 * ETHER})


def wallets(connection: Connection) -> dict[str, Wallet]:
    """A funded wallet for every party."""
    made = {name: Wallet.create(connection, keccak256(name.encode())) for name in NAMES}
    fund(connection, *(wallet.address for wallet in made.values()))
    return made


def segment_traces() -> list[SegmentTrace]:
    """Honest executions of both segments."""
    program, constants = toy.build(), toy.constants()
    executor = ReferenceExecutor(program, constants)
    first = SegmentTrace(program, constants, executor, toy.initial_state(), 0, INTERVAL)
    second = SegmentTrace(program, constants, executor, first.state(INTERVAL), INTERVAL, INTERVAL)
    return [first, second]


def terms_of(trace: SegmentTrace, steps: int = INTERVAL * SEGMENTS) -> Terms:
    """Terms of the toy task: every segment that is drawn is one of two, and the training is exact."""
    return Terms(
        program=program_hash(trace.program),
        constants=constants_root(trace.program.constants, trace.constants),
        initial_state=trace.state_root(0),
        document=b"\x01" * 32,
        reruns=bytes(32),
        steps=steps,
        interval=INTERVAL,
        draws=1,
        work_units=1000,
        solver_stake=3 * ETHER,
        verifier_stake=2 * ETHER,
        bond=ETHER,
        verifier_fee=ETHER // 10,
        rerun_count=0,
        profiled=0,
        margin=0,
        profile_window=0,
        training_window=86400,
        verification_window=86400,
        challenge_window=86400,
        clock=CLOCK,
    )


def at_verdict(connection: Connection, lie: object = None) -> ToyMarket:
    """Run a task up to its verdict; ``lie(honest trace)`` gives the verifier's execution if it isn't the honest one."""
    parties = wallets(connection)
    deployment = deploy(parties["deployer"], parties["deployer"].address)
    market, game = deployment.contracts(connection)
    traces = segment_traces()
    roots = [traces[0].state_root(0), traces[0].state_root(INTERVAL), traces[1].state_root(2 * INTERVAL)]
    task_id = market.submit(parties["submitter"], terms_of(traces[0]), ETHER)
    market.join_as_verifier(parties["verifier"], task_id)
    market.accept(parties["solver"], task_id, ETHER // 2, EXACT)
    log = CheckpointLog(roots[:2])
    market.post_progress(parties["solver"], task_id, 2, log.root(), [])
    log.append(roots[2])
    inclusion = log.inclusion(0)
    market.commit_proof(parties["solver"], task_id, 3, log.root(), log.consistency(2), b"\x03" * 32, inclusion)
    connection.wait_for_block(market.task(task_id).round + 1)
    (segment,) = market.draw(parties["verifier"], task_id)
    honest = traces[segment]
    claimed = lie(honest) if callable(lie) else honest
    last = (segment + 1) * INTERVAL
    end, start = honest.state(last), honest.state(segment * INTERVAL)
    claim = Claim(
        segment=segment,
        start=roots[segment],
        end=roots[segment + 1],
        replay=claimed.state_root(last),
        distances=component_distances(honest.program, claimed.state(last), end),
        references=component_distances(honest.program, claimed.state(last), start),
    )
    paths = (log.inclusion(segment), log.inclusion(segment + 1))
    market.post_verdict(parties["verifier"], task_id, [claim], [paths])
    return ToyMarket(connection, deployment, market, game, parties, task_id, claim, honest)
