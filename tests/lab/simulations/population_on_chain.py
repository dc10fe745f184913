"""A simulated population at deployed desks: the tasks of `lab.simulations.population` played on an EVM.

Everything that parties do is a transaction, and all that is drawn is drawn by the contracts. Trainings are what agents
say: roots that nobody has computed, of which they know which are true. So who is wrong in a dispute has no execution to
defend and gives up on its first turn; the game ends the dispute by that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eth_typing import ChecksumAddress
from web3 import Web3
from web3.types import Wei

from lab.simulations.designed_deployment import (
    COMMIT_WINDOW,
    INTERVAL,
    MARGIN,
    game_rules,
    market_rules,
    terms_of,
    toy_program,
)
from lab.simulations.population import Population, SimulationResult, simulate
from lab.simulations.simulated_seating import DONOR, FUND, OBJECTOR, SUBMITTER, TREASURY
from lab.simulations.venue import SimulatedVerdict, Venue, WatchCommitment
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.deployment_rules import FUND as FUND_KEY
from pol.chain.deployment_rules import Settings
from pol.chain.deployments.deployment import deploy
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.verdicts import NO_LOOK, PlacedClaim, entry, evidence
from pol.chain.node.connection import Connection
from pol.claims.segment_claim import Rerun, SegmentClaim, Three
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_header
from pol.dispute.disputed_claim import ReplayClaim
from pol.dispute.moves import Answer
from pol.dispute.position import Position
from pol.dispute.rules import answered
from pol.errors import OperationalError, ProtocolError
from pol.incentives.abi import abi_hash
from pol.incentives.auction import Bid, commitment
from pol.incentives.forced_errors import commitment as secret_commitment
from pol.incentives.game.parameter_design import Design
from pol.verification.profile.profile_claim import Portion, ProfileClaim

ETHER = 10**18
WAY: Three = (1 << 64, 1 << 64, 1 << 64)
"""How far an honest segment leads, and how far apart its ends may be."""
NEAR: Three = (1, 1, 1)
FAR = WAY
SALT = abi_hash("salt")
BOND_KEY = b"bond".ljust(32, b"\0")
"""Of all tickets, at the sortition."""


def play(connection: Connection, found: Design, setting: Population) -> SimulationResult:
    """Simulate a population at fresh contracts, and compare what everybody has in the vault with what the mirror says.

    Raises:
        OperationalError: the node fails, or has not enough money for such amounts.
        ProtocolError: contracts and mirror differ, by a unit of somebody's balance or in what is drawn or refused.
    """
    venue = Desks(connection, found, setting.seed)
    result = simulate(found.game, setting, venue)
    compare(result.balances, venue.changes())
    return result


def compare(mirrored: Mapping[str, int], changes: Mapping[str, int]) -> None:
    """Raise ProtocolError unless all balances are equal; who is missing has none."""
    names = sorted({*mirrored, *changes})
    differing = [n for n in names if mirrored.get(n, 0) != changes.get(n, 0)]
    if differing:
        told = "; ".join(f"{n}: {changes.get(n, 0)}, the mirror {mirrored.get(n, 0)}" for n in differing)
        raise ProtocolError(f"the contracts have paid otherwise than pol.incentives.payouts: {told}")


@dataclass(frozen=True)
class Trained:
    """What the solver of a task has committed to, and what was drawn of it."""

    log: CheckpointLog
    roots: tuple[bytes, ...]
    drawn: tuple[int, ...]


class Desks(Venue):
    """Plays tasks at the contracts of a fresh deployment.

    Raises:
        OperationalError: the node fails, or has not enough money for such amounts.
        ProtocolError: the contracts refuse what the mirror admits, or draw otherwise.
    """

    def __init__(self, connection: Connection, found: Design, seed: int = 1) -> None:
        super().__init__(seed)
        self.connection, self.found = connection, found
        self.program = toy_program()
        self.profiled = ProfileClaim(
            MARGIN, (Portion(abi_hash("portion"), WAY),), (Rerun(abi_hash("rerun"), NEAR),), (0, 0, 0)
        )
        self.terms = terms_of(found, self.program, CheckpointLog([abi_hash("reordered")]).root())
        self._wallets: dict[bytes, Wallet] = {}
        self._names: dict[str, list[Wallet]] = {}
        self._brought: dict[str, int] = {}
        self._trained: dict[bytes, Trained] = {}
        deployer, treasury = self._wallet("deployer"), self._wallet("treasury")
        self.treasury = treasury.address
        deployment = deploy(deployer, Settings(treasury.address, game_rules(found), market_rules(found)))
        self.market, self.beacon = deployment.market(connection), deployment.beacon_on(connection)
        self.anybody = deployer

    def changes(self) -> Mapping[str, int]:
        """By how much everybody's money in the vault has changed, the fund's and the treasury's included.

        After the last task nothing is locked any more but the bonds of tickets: what is not free by then is missing.
        """
        vault, found = self.market.vault, {}
        for name, wallets in self._names.items():
            found[name] = sum(map(self._held, wallets)) - self._brought[name]
        found[FUND] = vault.pot(self.market.jackpot.address, FUND_KEY)
        found[TREASURY] = vault.free(self.treasury)
        return found

    def admit(self, name: str, accounts: Sequence[bytes], tasks: int) -> tuple[bytes, ...]:
        """Wallets with money in the vault for all that may be lost in so many tasks."""
        stakes, deal = self.found.stakes, self.found.game.deal
        needed = (tasks + 4) * 2 * (stakes.verifier_stake + stakes.solver_stake) + 8 * ETHER
        if name == SUBMITTER:
            needed = tasks * deal.escrow
        return self._bring(name, len(accounts), needed)

    def donate(self, amount: int) -> None:
        """The donor gives to the fund."""
        self._bring(DONOR, 1, amount)
        self.market.jackpot.donate(self._names[DONOR][0], amount)

    def enrol(self, account: bytes, tickets: int) -> int:
        """Enrol or resign, by the difference."""
        sortition, wallet = self.market.sortition, self._wallets[account]
        more = tickets - sortition.tickets_now(wallet.address)
        if more > 0:
            sortition.enrol(wallet, more)
        elif more < 0:
            sortition.resign(wallet, -more)
        return self.connection.now()

    def submit(self, number: int) -> bytes:
        """The submitter pays the escrow."""
        return self.market.registry.submit(self._names[SUBMITTER][0], self.terms)

    def open_seat(self, task_id: bytes, seating: int) -> tuple[int, bytes]:
        """Anybody opens the claims."""
        seats = self.market.seats
        self.connection.wait_for_block(seats.seating(task_id).round + 1)
        seats.open_claims(self.anybody, task_id)
        opened = seats.seating(task_id)
        if opened.number != seating:
            raise ProtocolError(f"the contract opens seat {opened.number}, the mirror seat {seating}")
        return opened.fixed_at, opened.seed

    def profile(self, task_id: bytes, account: bytes, ticket: int) -> None:
        """A seat, a profile, and its window."""
        profiles = self.market.profiles
        self._sit(task_id, account, ticket, bytes(32))
        profiles.post(self._wallets[account], task_id, self.profiled, abi_hash("profile"))
        self.connection.wait_until(profiles.standing(task_id).deadline)
        profiles.conclude(self.anybody, task_id)

    def train(self, task_id: bytes, solver: bytes, roots: Sequence[bytes]) -> bytes:
        """One bid, which wins the maximum; the log; the draw."""
        market, wallet, stakes = self.market, self._wallets[solver], self.found.stakes
        roots = (self.terms.initial_state, *roots[1:])
        round_id = market.auction.last_round(market.registry.address, task_id)
        bid = Bid(solver, min(self.found.game.costs.training, stakes.price), self.terms.training_window)
        market.auction.bid(wallet, round_id, commitment(round_id, bid, SALT))
        self.connection.wait_until(market.auction.bid_until(round_id))
        market.auction.reveal(self.anybody, round_id, wallet.address, bid.price, bid.seconds, SALT)
        market.registry.award(self.anybody, task_id)
        log = CheckpointLog(list(roots))
        market.proofs.commit(wallet, task_id, len(roots), log.root(), [], abi_hash("proof"), log.inclusion(0))
        number = market.proofs.proof(task_id).round
        self._record(number)
        self._trained[task_id] = Trained(log, tuple(roots), tuple(market.proofs.drawn_segments(task_id)))
        return self.beacon.seed(number)

    def sit(self, task_id: bytes, seating: int, account: bytes, ticket: int, secret: bytes) -> bytes:
        """A claim that nobody beats."""
        self._sit(task_id, account, ticket, secret_commitment(account, task_id, secret))
        number = self.market.seats.seating(task_id).duty_round
        self._record(number)
        return self.beacon.seed(number)

    def post(self, task_id: bytes, said: SimulatedVerdict) -> tuple[int, bytes]:
        """The verdict, and the beginning of its watch."""
        verdicts, trained = self.market.verdicts, self._trained[task_id]
        claims = self._posted(task_id, said)
        paths = [(trained.log.inclusion(s), trained.log.inclusion(s + 1)) for s in trained.drawn]
        sealed = abi_hash("nothing")
        if said.planted is not None:
            sealed = said.duty.sealed(SALT, self._claims(task_id, said)[said.planted])
        verdicts.post(self._wallets[said.account], task_id, claims, paths, [], sealed)
        posted = verdicts.verdict(task_id)
        self._record(posted.watch_round)
        verdicts.open_watch(self.anybody, task_id)
        self.connection.wait_until(verdicts.verdict(task_id).watch_until - COMMIT_WINDOW)
        return posted.watch_fixed_at, self.beacon.seed(posted.watch_round)

    def entry(self, task_id: bytes, index: int, root: bytes, rejects: bool) -> bytes:
        """Of a claim without a second look."""
        return entry(self._claim(self._trained[task_id], index, root, rejects), NO_LOOK)

    def watch(self, task_id: bytes, found: WatchCommitment) -> None:
        """In the last seconds of the watch."""
        self.market.jackpot.watch(self._wallets[found.account], task_id, found.ticket, found.posted)

    def disclose(self, task_id: bytes, said: SimulatedVerdict) -> None:
        """Secret, and what was sealed."""
        verdicts, wallet, secret = self.market.verdicts, self._wallets[said.account], said.duty.secret
        self.connection.wait_until(verdicts.verdict(task_id).watch_until)
        if said.planted is None:
            verdicts.disclose(wallet, task_id, secret)
            return
        truth = self._claims(task_id, said)[said.planted]
        entries = _placed(self._posted(task_id, said), said.planted).entries
        verdicts.disclose_planted(wallet, task_id, secret, SALT, PlacedClaim(truth, NO_LOOK, entries))

    def withhold(self, task_id: bytes) -> None:
        """Anybody removes the verifier."""
        verdicts = self.market.verdicts
        self.connection.wait_until(verdicts.verdict(task_id).watch_until + self.terms.disclosure_window)
        verdicts.claim_undisclosed(self.anybody, task_id)

    def challenge(self, task_id: bytes, said: SimulatedVerdict, challenger: bytes, *, right: bool) -> None:
        """A dispute of the game, up to where somebody gives up, and anybody has it settled."""
        market, header = self.market, program_header(self.program)
        placed = _placed(self._claims(task_id, said), 0)
        claim, terms = placed.claim, self.terms
        steps = (claim.segment * INTERVAL, INTERVAL)
        about = ReplayClaim(bytes(32), terms.program, terms.constants, *steps, claim.start, claim.replay)
        wallet, verifier = self._wallets[challenger], self._wallets[said.account]
        payload = _invented("challenger", about.first(header, market.game.bits))
        charge = ClaimCharge(0, ClaimChargeKind.REPLAY, 0)
        number = market.challenges.challenge(wallet, task_id, charge, placed, header, payload)
        position = market.game.standing(number, self.program).position
        if right:
            market.game.resign(verifier, number, position)
        else:
            index = len(position.items) - 1
            answer = Answer(index, _invented("verifier", answered(position, index)))
            market.game.send(verifier, number, position, answer)
            market.game.resign(wallet, number, market.game.standing(number, self.program).position)
        market.challenges.settle(self.anybody, number)

    def object(self, task_id: bytes, segment: int, bond: int) -> int:
        """A counterclaim that nobody contests."""
        desk, trained = self.market.counterclaims, self._trained[task_id]
        start, end = trained.roots[segment : segment + 2]
        claim = SegmentClaim(segment, start, end, abi_hash("an objector's replay", task_id), FAR, WAY)
        paths = (trained.log.inclusion(segment), trained.log.inclusion(segment + 1))
        number = desk.counterclaim(self._names[OBJECTOR][0], task_id, claim, paths, None, 8 * bond)
        said = desk.counterclaimed(number)
        self.connection.wait_until(said.until)
        desk.conclude(self.anybody, number)
        return said.bond

    def settle(self, task_id: bytes) -> None:
        """After the window for challenges."""
        self.connection.wait_until(self.market.registry.task(task_id).deadline)
        self.market.settlement.settle(self.anybody, task_id)

    def claim(
        self, task_id: bytes, said: SimulatedVerdict, stands: SimulatedVerdict, found: WatchCommitment, *, paid: bool
    ) -> None:
        """Anybody brings the catch; the contract has to agree whether it is one."""
        market = self.market
        before = _placed(self._posted(task_id, said), found.index)
        after = _placed(self._claims(task_id, stands), found.index)
        account = self._wallets[found.account].address
        opened = (found.seating, account, found.ticket, found.index, found.salt)
        try:
            market.jackpot.claim(self.anybody, task_id, *opened, evidence(before, after))
        except Reverted as refused:
            if paid:
                raise ProtocolError(f"the contract doesn't pay a catch that the mirror pays: {refused}") from refused
        else:
            if not paid:
                raise ProtocolError("the contract pays a catch that the mirror doesn't")

    def close(self, task_id: bytes) -> None:
        """After the time for catches."""
        closed = self.market.registry.task(task_id).closed
        self.connection.wait_until(self.market.jackpot.catch_until(closed))
        self.market.jackpot.sweep(self.anybody, task_id)

    def _sit(self, task_id: bytes, account: bytes, ticket: int, committed: bytes) -> None:
        seats = self.market.seats
        seats.claim(self._wallets[account], task_id, ticket, committed)
        self.connection.wait_until(seats.seating(task_id).until)
        seats.decide(self.anybody, task_id)

    def _claims(self, task_id: bytes, said: SimulatedVerdict) -> list[SegmentClaim]:
        """As they stand after the disclosure."""
        trained = self._trained[task_id]
        return [self._claim(trained, i, root, i in said.rejecting) for i, root in enumerate(said.claims)]

    def _claim(self, trained: Trained, index: int, root: bytes, rejects: bool) -> SegmentClaim:
        segment = trained.drawn[index]
        start, end = trained.roots[segment : segment + 2]
        return SegmentClaim(segment, start, end, root, FAR if rejects else NEAR, WAY)

    def _posted(self, task_id: bytes, said: SimulatedVerdict) -> list[SegmentClaim]:
        """As they are posted: with the error root where one is planted."""
        claims = self._claims(task_id, said)
        return [said.duty.plant(claim) if i == said.planted else claim for i, claim in enumerate(claims)]

    def _held(self, wallet: Wallet) -> int:
        vault, account = self.market.vault, wallet.address
        bond = vault.duty(self.market.sortition.address, BOND_KEY, account)
        return vault.free(account) + bond.locked + bond.leaving

    def _record(self, number: int) -> None:
        self.connection.wait_for_block(number + 1)
        if not self.beacon.recorded(number):
            self.beacon.record(self.anybody, number)

    def _wallet(self, name: str) -> Wallet:
        wallet = Wallet.create(self.connection, keccak256(f"{self.seed} {name}".encode()))
        eth = self.connection.web3.eth
        eth.send_transaction({"from": eth.accounts[0], "to": wallet.address, "value": Wei(1000 * ETHER)})
        self._wallets[bytes.fromhex(wallet.address[2:])] = wallet
        return wallet

    def _bring(self, name: str, count: int, amount: int) -> tuple[bytes, ...]:
        """Deposit so much for each of so many accounts of somebody."""
        wallets = [self._wallet(f"{name} {number}") for number in range(count)]
        for wallet in wallets:
            self._deposit(wallet.address, amount)
        self._names[name] = wallets
        self._brought[name] = count * amount
        return tuple(bytes.fromhex(wallet.address[2:]) for wallet in wallets)

    def _deposit(self, account: ChecksumAddress, amount: int) -> None:
        web3, vault = self.connection.web3, self.market.vault
        rich = max(web3.eth.accounts, key=web3.eth.get_balance)
        if web3.eth.get_balance(rich) < amount + ETHER:
            raise OperationalError(f"no account of {self.connection.name} has {Web3.from_wei(amount, 'ether')} ether")
        vault.function("deposit", account, amount).transact({"from": rich, "value": Wei(amount)})


def _placed(claims: Sequence[SegmentClaim], index: int) -> PlacedClaim:
    """A claim among the entries of all; none has a second look."""
    return PlacedClaim(claims[index], NO_LOOK, tuple(entry(claim, NO_LOOK) for claim in claims))


def _invented(by: str, position: Position) -> bytes:
    """What somebody opens who has executed nothing."""
    return b"".join(abi_hash(by, place) for place in range(position.expected_bytes // 32))
