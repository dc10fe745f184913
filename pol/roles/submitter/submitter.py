"""The submitter: publishes a captured training step, or a circuit's, as a task and escrows the fee."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property

from eth_typing import ChecksumAddress

from pol.chain.desks.market import Market
from pol.chain.desks.proven_steps import PinnedProofs
from pol.chain.desks.task_registry import Terms
from pol.chain.desks.terms_rules import require as require_admitted
from pol.claims.distance import require_distances
from pol.errors import OperationalError, ProtocolError
from pol.graph.captured_step import Capture
from pol.graph.work_estimate import step_work
from pol.incentives.payouts import look_fee, share_up
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.policy import PUBLIC_CHAIN
from pol.roles.party.proof_pins import pin_of
from pol.roles.party.role import Role
from pol.roles.process.defence import reason_not_to_defend
from pol.training.task import published_task, task_source
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.task_source import TaskStep
from pol.training.task.task_start import GIVEN, TaskStart
from pol.verification.profile.discontinuous_updates import require_continuous_update
from pol.verification.profile.profile_claim import MARGIN
from pol.verification.profile.profiling import PROFILED, RERUNS, measure_profile, rerun_programs, rerun_programs_root
from pol.verification.profile.slot_scales import bounded
from pol.verification.verdict.second_look import LOOK_MARGIN, LOOKS
from pol.zk.step_data import NetworkStep

GWEI = 10**9
UNPUBLISHED = b"\1" * 32
"""Stands in for hashes and roots in terms whose task isn't published."""


TOLERANT = MARGIN
"""The usual `Offer.margin` where thresholds decide."""


@dataclass(frozen=True)
class Offer:
    """A submitter's offer: what it pays, and the stakes that it asks for. Amounts are wei, windows seconds."""

    steps: int
    interval: int
    draws: int = 3
    wei_per_work_unit: int = GWEI
    verifier_share: int = 4
    """The verifier's fee is the maximum price divided by this."""
    stake_factor: int = 2
    """Stakes are the maximum price times this, more than a cheat gains; a solver's also covers its second looks."""
    bond_divisor: int = 2
    """A challenger's bond is the maximum price divided by this."""
    margin: int = 0
    """0 asks for exact training: no profile, equal roots. Else the factor on profiled distances, for solvers that can't
    train canonically (`TOLERANT`)."""
    rerun_count: int = RERUNS
    """Reruns of each profiled segment."""
    profiled: int = PROFILED
    """Profiled segments, if the task has so many."""
    profile_window: int = 24 * 3600
    training_window: int = 24 * 3600
    verification_window: int = 24 * 3600
    challenge_window: int = 24 * 3600
    clock: int = 6 * 3600
    bid_window: int = 3600
    """For bids, and again to reveal them."""
    seat_window: int = 3600
    watch_window: int = 24 * 3600
    disclosure_window: int = 3600
    jackpot_factor: int = 1
    """The jackpot is the maximum price times this."""
    looks: int = LOOKS
    look_margin: int = LOOK_MARGIN

    def surviving(self, outage: int) -> Offer:
        """The same with every window and clock longer by a halt of the chain; ``outage`` in seconds."""
        windows = [each.name for each in fields(self) if each.name.endswith("_window") or each.name == "clock"]
        return replace(self, **{name: getattr(self, name) + outage for name in windows})


@dataclass(frozen=True)
class Quote:
    """The cost of a task before it is submitted; units of the vault's asset."""

    price: int
    """The most that the solver is paid."""
    escrow: int
    """Locked of the submitter: price, treasury's part, fees and tax. The rest comes back at settlement."""
    verifier_fee: int
    tax: int
    solver_stake: int
    verifier_stake: int
    bond: int
    jackpot: int
    fund_short: int
    """Missing in the jackpot's fund before a solver can win the task."""


class Submitter(Role):
    """Publishes tasks and pays for their training."""

    def quote(self, step: TaskStep, offer: Offer) -> Quote:
        """The cost of a task; nothing is published or sent.

        Raises:
            ProtocolError: the terms miss the market's bounds; the message says which. Or they admit a distance, and
                the step is a circuit's.
            UnsupportedError: they admit a distance, and an update jumps (docs/spec/profile.md, "Jumps").
        """
        if isinstance(step, NetworkStep) and offer.margin:
            raise ProtocolError(
                f"the offer has a margin of {offer.margin}, and a circuit's steps have the same bits everywhere: ask "
                "for exact training, by a margin of 0"
            )
        if isinstance(step, Capture) and offer.margin:
            require_continuous_update(step.aten)
        return quote_of(self.market, terms_of(step_work(step.program), offer))

    def submit(
        self,
        capture: TaskStep,
        offer: Offer,
        model: str = "",
        optimizer: str = "",
        start: TaskStart = GIVEN,
        verifier: ChecksumAddress | None = None,
    ) -> bytes:
        """Publish the task and put it on chain with its fees in escrow; returns the task's id.

        The escrow is an upper bound from the work in the program. It is locked from this party's free money in the
        vault; what isn't needed is freed at settlement.

        ``verifier`` is the contract whose exact proofs decide disputes about the task, for a circuit's step
        (docs/spec/zk.md). It is pinned before the task exists; this party's policy names its circuit and key.

        Raises:
            ProtocolError: the terms miss the market's bounds, this party has less than the escrow free in the vault,
                or the verifier's circuit computes another step; nothing is published.
            UnsupportedError: an update jumps, or no profile of the task has thresholds, so that no solver could be
                accepted; nothing is locked.
        """
        task_source.require_steps(task_source.source_of(capture), capture.program, capture.names, offer.steps)
        require_distances(capture.program, capture.state, capture.names.slots)
        quote = self.quote(capture, offer)
        pin = None if verifier is None else self._pin(capture, offer, verifier)
        begun = self.market.registry.begun(self.wallet)
        free = self.market.vault.free(self.wallet.address)
        if free < quote.escrow and not begun:
            raise ProtocolError(
                f"the task locks {quote.escrow} wei, and {self.wallet.address} has {free} free in the vault: bring the "
                f"difference by `pol stake deposit {quote.escrow - free}wei`, or lower the price of a work unit"
            )
        if quote.fund_short:
            self.wallet.tell(
                f"the jackpot's fund lacks {quote.fund_short} wei: no solver can win the task until somebody adds them "
                f"by `pol stake donate {quote.fund_short}wei`"
            )
        reason = reason_not_to_defend(self, capture, terms_of(step_work(capture.program), offer))
        if reason:
            self.wallet.tell(
                "parties with machine and policy like these won't stake on the task (`pol explain --dispute`): "
                f"{reason}; shorter segments, a longer clock or another deployment admit more of them"
            )
        digest, document = published_task.publish(
            self.store,
            capture,
            steps=offer.steps,
            interval=offer.interval,
            model=model,
            optimizer=optimizer,
            start=start,
        )
        terms, program = terms_of(document.work, offer), capture.program
        if offer.margin:
            # What no verifier could post is known before anything is locked.
            task, _ = bounded(
                self.store,
                published_task.load(self.store, digest),
                lambda each: measure_profile(
                    each, self.times.executors, terms.profiled, terms.rerun_count, terms.margin
                ),
                self.wallet.tell,
            )
            digest, document, program = task.digest, task.document, task.program
        reruns = rerun_programs_root(rerun_programs(program, terms.rerun_count, terms.looks))
        named = replace(
            terms,
            reruns=reruns,
            program=document.program_hash,
            constants=document.constants_root,
            initial_state=document.initial_state_root,
            document=bytes.fromhex(digest),
        )
        # Windows follow from measured times: a process that was killed and started again means the same task.
        named = next((terms for terms in begun if _timeless(terms) == _timeless(named)), named)
        if pin is not None:
            nonce = self.market.registry.nonce(self.wallet.address)
            self.market.proven_steps.pin(self.wallet, nonce, named, pin)
        return self.market.registry.submit(self.wallet, named)

    def _pin(self, step: TaskStep, offer: Offer, verifier: ChecksumAddress) -> PinnedProofs:
        """The pin that every party will recompute. Raises ProtocolError for a step that isn't the verifier's."""
        return pin_of(verifier, step.program, step.constants, offer.steps, self.trusted_network(verifier))

    def has_model(self, task_id: bytes) -> bool:
        """Whether the trained state can be read. If so, it is kept in this party's folder, also after settlement."""
        key = (task_id, self.market.registry.task(task_id).began)
        if key in self._models:
            return True
        try:
            task = self.task(task_id)
        except (OperationalError, ProtocolError):
            return False
        # A scope of its own, which survives the end of the task.
        with self.store.about("models") if isinstance(self.store, KeptStore) else nullcontext():
            try:
                load_checkpoint(self.store, task, self.proof(task_id).checkpoints[-1])
            except (OperationalError, ProtocolError):
                return False
            with suppress(OperationalError):
                self.require_kept()
                self._models.add(key)
        return True

    @cached_property
    def _models(self) -> set[tuple[bytes, int]]:
        """Tasks whose models lie in the folder, with the time when their solvers were chosen."""
        return set()


def quote_of(market: Market, terms: Terms) -> Quote:
    """The cost of a task with these terms. Raises as `Submitter.quote`."""
    jackpot = market.jackpot
    tax = jackpot.tax(terms.jackpot)
    require_admitted(terms, jackpot.shares(), tax, jackpot.commit_window())
    return Quote(
        price=terms.maximum_price,
        escrow=market.settlement.escrow_of(terms),
        verifier_fee=terms.verifier_fee,
        tax=tax,
        solver_stake=terms.solver_stake,
        verifier_stake=terms.verifier_stake,
        bond=terms.bond,
        jackpot=terms.jackpot,
        fund_short=max(0, terms.jackpot - jackpot.available()),
    )


def _timeless(terms: Terms) -> dict[str, object]:
    """The terms without windows and clock."""
    return {name: value for name, value in asdict(terms).items() if not (name.endswith("_window") or name == "clock")}


def terms_of(work_of_step: int, offer: Offer) -> Terms:
    """The terms of an offer for a step of ``work_of_step`` work units, with stand-ins for all hashes and roots."""
    work = work_of_step * offer.steps
    price = work * offer.wei_per_work_unit
    exact = offer.margin == 0
    reruns = 0 if exact else offer.rerun_count
    looks = 0 if exact else offer.looks
    fee = price // offer.verifier_share
    # The solver pays for second looks, and the rest of its stake has to cover the verifier's fee.
    stake = max(price * offer.stake_factor, offer.draws * look_fee(fee, looks, offer.draws) + 2 * fee + 1)
    return Terms(
        program=UNPUBLISHED,
        constants=UNPUBLISHED,
        initial_state=UNPUBLISHED,
        document=UNPUBLISHED,
        reruns=bytes(32) if exact else UNPUBLISHED,
        steps=offer.steps,
        interval=offer.interval,
        draws=offer.draws,
        work_units=work,
        unit_price=offer.wei_per_work_unit << 32,
        second_price=0,
        solver_stake=stake,
        verifier_stake=max(price * offer.stake_factor, share_up(price + stake, PUBLIC_CHAIN.min_word)),
        bond=price // offer.bond_divisor,
        verifier_fee=fee,
        jackpot=price * offer.jackpot_factor,
        rerun_count=reruns,
        profiled=0 if exact else min(offer.profiled, offer.steps // offer.interval),
        margin=offer.margin,
        looks=looks,
        look_margin=offer.look_margin if looks else 0,
        profile_window=0 if exact else offer.profile_window,
        bid_window=offer.bid_window,
        seat_window=offer.seat_window,
        training_window=offer.training_window,
        verification_window=offer.verification_window,
        watch_window=offer.watch_window,
        disclosure_window=offer.disclosure_window,
        challenge_window=offer.challenge_window,
        clock=offer.clock,
    )
