"""A worker's false claim on a chain: it has a stake, somebody disputes the claim, the chain decides and slashes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from web3 import Web3

from pol.chain.account.wallet import Wallet
from pol.chain.deployments.contract_layout import deploy_rounds
from pol.chain.node.connection import Connection
from pol.chain.rounds.plan_terms import PlanCommitment, PlanMoney, PlanTerms
from pol.chain.rounds.round_contracts import RoundContracts
from pol.chain.rounds.worker_bonds import Standing
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_header
from pol.decentralised.processes.local_processes import local_secret
from pol.demo.funding import ETHER, fund
from pol.demo.lying_players import JumpingTrace
from pol.demo.narrated_dispute import narrated
from pol.demo.scenario_report import DisputeReport, ether
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.play.round_evidence import replay_claim_of, trace_of
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.report.narrator import Narrator
from pol.roles.party.dispute_session import DisputeSession
from pol.rounds.auditing.claim_replay import load_end, load_phase
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.plan.rounds_plan import RoundsPlan

NOBODY = Web3.to_checksum_address(keccak256(b"pol/demo rounds: nobody")[-20:])
"""An address whose key nobody knows: it burns what it gets."""
HOUR, DAY = 3600, 24 * 3600
FUNDS = 30 * ETHER
DEPOSIT = 20 * ETHER
MONEY = PlanMoney(
    stake=4 * ETHER,
    keeper_stake=8 * ETHER,
    price=ETHER // 100,
    pay=ETHER,
    work=1000,
    settlements=3,
    period=7 * DAY,
    line_window=DAY,
    answer_window=DAY,
    leave_delay=4 * DAY,
    clock=HOUR,
)


@dataclass(frozen=True)
class SlashReport:
    """The dispute about a worker's claim, and what became of its stake; wei."""

    dispute: DisputeReport
    is_slashed: bool
    stake: int
    reward: int
    """What the challenger has gained."""
    burnt: int
    """What nobody gets: it goes to an address without a key."""

    @property
    def is_balanced(self) -> bool:
        """Whether all of the stake went somewhere."""
        return self.reward + self.burnt == self.stake


@dataclass(frozen=True)
class StakedRounds:
    """A plan on a chain, whose workers have put up their stakes."""

    contracts: RoundContracts
    plan: RoundsPlan
    """As it is registered: all that is signed names its registration."""
    plan_id: bytes
    workers: Mapping[str, Wallet]
    """By the worker's name."""
    challenger: Wallet

    def slash(self, tell: Narrator, rounds: LoggedRounds, entry: ClaimEntry) -> SlashReport:
        """Dispute a false claim to the end, both sides played, each move narrated."""
        bonds, disputes, worker = self.contracts.bonds, self.contracts.disputes, self.workers[entry.worker]
        phase = load_phase(rounds.store, rounds.plan.phases[entry.claim.phase])
        honest, liar = trace_of(rounds, entry, CpuExecutor), _as_claimed(rounds, entry)
        header = program_header(phase.program)
        payload = ReplayPlayer(honest).open(replay_claim_of(entry).first(header))
        before = self._free()
        bond = ether(disputes.bond_of(self.plan_id, entry.worker))
        number = disputes.dispute(self.challenger, self.plan_id, entry, header, payload)
        tell.say(
            f"The auditor puts up {bond} against the signed claim and opens its own states along its "
            f"{entry.claim.steps} steps. The worker has signed, so it has to answer, or loses by its clock."
        )
        sides = (
            DisputeSession(self.contracts.game, worker, phase.program, number, ReplayPlayer(liar)),
            DisputeSession(self.contracts.game, self.challenger, phase.program, number, ReplayPlayer(honest)),
        )
        dispute = narrated(tell, sides, phase.program, phase.names, entry.claim.digest, "worker")
        disputes.settle(self.challenger, number)
        standing = bonds.bond(self.plan_id, worker.address).standing
        reward, burnt = (after - was for after, was in zip(self._free(), before, strict=True))
        return SlashReport(dispute, standing is Standing.SLASHED, MONEY.stake, reward, burnt)

    def _free(self) -> tuple[int, int]:
        vault = self.contracts.vault
        return vault.free(self.challenger.address), vault.free(NOBODY)


def stake_rounds(connection: Connection, plan: RoundsPlan, seed: int, coordinator: int, workers: int) -> StakedRounds:
    """Deploy the contracts of rounds, register a plan, and let its coordinator and its local workers join.

    Raises:
        UnsupportedError: money on this chain is real, and the keys of local workers are known to everybody.
    """
    if not connection.is_test_chain:
        raise UnsupportedError("the keys of these workers are known to everybody: give --rpc of a test chain, or none")
    others = ("submitter", "auditor")
    secrets = {name: keccak256(f"pol/demo rounds {seed} {name}".encode()) for name in others}
    named = {name: Wallet.create(connection, secret) for name, secret in secrets.items()}
    staked = [Wallet.create(connection, local_secret(number)) for number in (coordinator, *range(workers))]
    paying = [named["submitter"], named["auditor"], *staked]
    fund(connection, [wallet.address for wallet in paying], FUNDS)
    contracts = deploy_rounds(named["submitter"], NOBODY)
    for wallet in paying:
        contracts.vault.deposit(wallet, DEPOSIT)
    plan_id = contracts.bonds.register(named["submitter"], PlanTerms.of(PlanCommitment.of(plan), MONEY))
    for wallet in staked:
        contracts.bonds.join(wallet, plan_id)
    by_name = {wallet.address.lower(): wallet for wallet in staked}
    registered = replace(plan, registration=contracts.bonds.registration(plan_id))
    return StakedRounds(contracts, registered, plan_id, by_name, named["auditor"])


def _as_claimed(rounds: LoggedRounds, entry: ClaimEntry) -> JumpingTrace:
    """What a liar can say: it executes all steps, and then jumps to the end that it has signed."""
    trace = trace_of(rounds, entry, CpuExecutor)
    held, last = load_end(rounds, entry), trace.state(entry.claim.first_step + entry.claim.steps)
    return JumpingTrace(trace, [held.get(slot, words) for slot, words in enumerate(last)])
