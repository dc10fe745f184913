"""A market on a chain with one verdict about the toy program: the start of every dispute on chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from eth_typing import ChecksumAddress

import toy_program
from node_snapshots import until_true
from pol.chain.account.wallet import Wallet
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.deployment_rules import BeaconKind, Settings
from pol.chain.deployments.deployment import Deployment, deploy
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.market import Market
from pol.chain.desks.task_registry import Terms
from pol.chain.node.connection import Connection
from pol.claims.distance import component_distances
from pol.claims.segment_claim import SegmentClaim
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_hash, program_header
from pol.commitments.tensor import constants_root
from pol.dispute.disputed_claim import ReplayClaim, SumClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player
from pol.dispute.play.receipt_evidence import trace_receipt
from pol.dispute.position import ClaimKind
from pol.execution.reference import ReferenceExecutor
from pol.incentives.auction import Bid, commitment
from pol.incentives.forced_errors import Assignment
from pol.incentives.forced_errors import commitment as secret_commitment
from shared_chain import SharedChain

INTERVAL, SEGMENTS = 20, 2
ETHER = 10**18
CLOCK = 3600
DEPOSIT = 50 * ETHER
TICKETS = 4
NAMES = ("submitter", "solver", "verifier", "whistleblower", "deployer")


@dataclass
class ToyMarket:
    """One task at its verdict."""

    connection: Connection
    deployment: Deployment
    market: Market
    game: DisputeGame
    wallets: dict[str, Wallet]
    task_id: bytes
    claim: SegmentClaim
    honest: SegmentTrace
    before: dict[str, int]
    """What each party had free in the vault before the task."""

    def gain(self, name: str) -> int:
        """What a party has free in the vault more than it had."""
        return self.market.vault.free(self.wallets[name].address) - self.before[name]

    def challenge(self, player: Player, kind: ClaimKind = ClaimKind.REPLAY, component: int = 0) -> int:
        """The whistleblower disputes the claim with this player's version of it."""
        program, claim, header = self.honest.program, self.claim, program_header(self.honest.program)
        about: ReplayClaim | SumClaim
        if kind is ClaimKind.REPLAY:
            constants = constants_root(program.constants, self.honest.constants)
            steps = (claim.segment * self.honest.steps, self.honest.steps)
            about = ReplayClaim(bytes(32), program_hash(program), constants, *steps, claim.start, claim.replay)
        else:
            other, sums = claim.end, claim.distances
            if kind is ClaimKind.REFERENCE:
                other, sums = claim.start, claim.references
            states = (claim.replay, other)
            about = SumClaim(bytes(32), program_hash(program), component, *states, sums[component - 1])
        payload = player.open(about.first(header))
        placed = self.market.verdicts.placed(self.task_id, self.market.registry.task(self.task_id).seating, 0)
        charge = ClaimCharge(0, ClaimChargeKind(kind), component)
        whistleblower = self.wallets["whistleblower"]
        return self.market.challenges.challenge(whistleblower, self.task_id, charge, placed, header, payload)


def fund(connection: Connection, *addresses: ChecksumAddress) -> None:
    """Ether from an account that the node unlocks."""
    eth = connection.web3.eth
    rich = eth.accounts[0]
    for address in addresses:
        sent = eth.send_transaction({"from": rich, "to": address, "value": 100 * ETHER})
        # A node answers before the block is there.
        eth.wait_for_transaction_receipt(sent, poll_latency=0.01)


def wallets(connection: Connection) -> dict[str, Wallet]:
    """A funded wallet for every party."""
    made = {name: Wallet.create(connection, keccak256(name.encode())) for name in NAMES}
    fund(connection, *(wallet.address for wallet in made.values()))
    return made


def segment_traces() -> list[SegmentTrace]:
    """Honest executions of both segments."""
    program, constants = toy_program.build(), toy_program.constants()
    executor = ReferenceExecutor(program, constants)
    first = SegmentTrace(program, constants, executor, toy_program.initial_state(), 0, INTERVAL)
    second = SegmentTrace(program, constants, executor, first.state(INTERVAL), INTERVAL, INTERVAL)
    return [first, second]


def terms_of(trace: SegmentTrace, steps: int = INTERVAL * SEGMENTS, interval: int = INTERVAL) -> Terms:
    """Terms of the toy task: every segment that is drawn is one of two, and the training is exact."""
    return Terms(
        program=program_hash(trace.program),
        constants=constants_root(trace.program.constants, trace.constants),
        initial_state=trace.state_root(0),
        document=b"\x01" * 32,
        reruns=bytes(32),
        steps=steps,
        interval=interval,
        draws=1,
        work_units=1000,
        unit_price=ETHER // 1000 << 32,
        second_price=0,
        solver_stake=3 * ETHER,
        verifier_stake=2 * ETHER,
        bond=ETHER,
        verifier_fee=ETHER // 10,
        jackpot=ETHER // 100,
        rerun_count=0,
        profiled=0,
        margin=0,
        looks=0,
        look_margin=0,
        profile_window=0,
        bid_window=600,
        seat_window=600,
        training_window=86400,
        verification_window=86400,
        watch_window=3600,
        disclosure_window=3600,
        challenge_window=86400,
        clock=CLOCK,
    )


@dataclass(frozen=True)
class Ground:
    """A deployment whose parties have brought their money."""

    connection: Connection
    deployment: Deployment
    market: Market
    wallets: dict[str, Wallet]

    def again(self) -> Ground:
        """The same, and nothing read yet."""
        return replace(self, market=self.deployment.market(self.connection))


def settled(connection: Connection, beacon_kind: BeaconKind = BeaconKind.BLOCK) -> Ground:
    """Everybody's money is in the vault, the fund has some, and the verifier has tickets."""
    parties = wallets(connection)
    deployment = deploy(parties["deployer"], Settings(parties["deployer"].address, beacon=beacon_kind))
    market = deployment.market(connection)
    for wallet in parties.values():
        market.vault.deposit(wallet, DEPOSIT)
    market.jackpot.donate(parties["deployer"], 10 * ETHER)
    market.sortition.enrol(parties["verifier"], TICKETS)
    return Ground(connection, deployment, market, parties)


@contextmanager
def lent(chain: SharedChain) -> Iterator[Ground]:
    """The same on the node of all tests."""
    with chain.lent("toy market", settled) as ground:
        yield ground.again()


SALT = b"\x07" * 32


def awarded(ground: Ground, terms: Terms) -> bytes:
    """A task of these terms that the solver has won; returns its id."""
    market, solver = ground.market, ground.wallets["solver"]
    task_id = market.registry.submit(ground.wallets["submitter"], terms)
    round_id = market.auction.last_round(market.registry.address, task_id)
    bid = Bid(bytes.fromhex(solver.address[2:]), ETHER // 2, 3600)
    market.auction.bid(solver, round_id, commitment(round_id, bid, SALT))
    ground.connection.wait_until(market.auction.bid_until(round_id))
    market.auction.reveal(solver, round_id, solver.address, bid.price, bid.seconds, SALT)
    market.registry.award(solver, task_id)
    return task_id


def committed(ground: Ground, terms: Terms, roots: list[bytes]) -> bytes:
    """A task of these terms up to its committed proof; returns its id."""
    task_id, proofs, solver = awarded(ground, terms), ground.market.proofs, ground.wallets["solver"]
    log = CheckpointLog(roots[:2])
    proofs.post(solver, task_id, 2, log.root(), [])
    log.append(roots[2])
    proofs.commit(solver, task_id, 3, log.root(), log.consistency(2), b"\x03" * 32, log.inclusion(0))
    return task_id


SECRET = b"\x09" * 32


def seat(ground: Ground, name: str, task_id: bytes) -> None:
    """A party gets the verifier's seat, and the beacon says that it doesn't have to err."""
    connection, market, wallet = ground.connection, ground.market, ground.wallets[name]
    beacon, rate = ground.deployment.beacon_on(connection), market.verdicts.read("rate")
    connection.wait_for_block(market.seats.seating(task_id).round + 1)
    market.seats.open_claims(wallet, task_id)
    account = bytes.fromhex(wallet.address[2:])
    market.seats.claim(wallet, task_id, 0, secret_commitment(account, task_id, SECRET))
    connection.wait_until(market.seats.seating(task_id).until)

    def spared() -> bool:
        market.seats.decide(wallet, task_id)
        seating = market.seats.seating(task_id)
        connection.wait_for_block(seating.duty_round + 1)
        beacon.record(wallet, seating.duty_round)
        seed = market.seats.duty_seed(task_id)
        assert seed is not None
        return not Assignment(seed, task_id, seating.number, SECRET).is_forced(rate)

    until_true(connection, spared)


def at_verdict(
    ground: Ground, lie: Callable[[SegmentTrace], SegmentTrace] | None = None, traces: list[SegmentTrace] | None = None
) -> ToyMarket:
    """Run a task up to its verdict; ``lie(honest trace)`` gives the verifier's execution if it isn't the honest one.

    ``traces``: honest executions of two segments, the toy program's if there are none.
    """
    connection, market, verifier = ground.connection, ground.market, ground.wallets["verifier"]
    before = {name: market.vault.free(wallet.address) for name, wallet in ground.wallets.items()}
    traces = traces or segment_traces()
    interval = traces[0].steps
    roots = [traces[0].state_root(0), traces[0].state_root(interval), traces[1].state_root(2 * interval)]
    task_id = committed(ground, terms_of(traces[0], interval * SEGMENTS, interval), roots)
    seat(ground, "verifier", task_id)
    (segment,) = market.proofs.drawn_segments(task_id)
    honest = traces[segment]
    claimed = lie(honest) if lie is not None else honest
    last = (segment + 1) * interval
    end, start = honest.state(last), honest.state(segment * interval)
    claim = SegmentClaim(
        segment=segment,
        start=roots[segment],
        end=roots[segment + 1],
        replay=claimed.state_root(last),
        distances=component_distances(honest.program, claimed.state(last), end),
        references=component_distances(honest.program, claimed.state(last), start),
        before=claimed.state_root(last - 1),
        receipt=trace_receipt(claimed, last - 1, market.proofs.receipt_seed(task_id, segment)),
    )
    log = CheckpointLog(roots)
    paths = (log.inclusion(segment), log.inclusion(segment + 1))
    market.verdicts.post(verifier, task_id, [claim], [paths], [], b"\x01" * 32)
    connection.wait_for_block(market.verdicts.verdict(task_id).watch_round + 1)
    market.verdicts.open_watch(verifier, task_id)
    connection.wait_until(market.verdicts.verdict(task_id).watch_until)
    market.verdicts.disclose(verifier, task_id, SECRET)
    about = (ground.wallets, task_id, claim, honest, before)
    return ToyMarket(connection, ground.deployment, market, market.game, *about)
