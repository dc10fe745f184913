"""The submitter: publishes a captured training step as a task and escrows the fee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pol.chain.registry import Terms
from pol.roles.role import Role
from pol.training import task
from pol.training.start import GIVEN, Start
from pol.verification.profile_claim import MARGIN
from pol.verification.profiling import PROFILED, RERUNS, rerun_programs, rerun_programs_root
from pol.verification.second_look import LOOK_MARGIN, LOOKS

if TYPE_CHECKING:
    # Only an annotation, and it would bring torch.
    from pol.graph.capture import Capture

GWEI = 10**9


@dataclass(frozen=True)
class Offer:
    """What a submitter is ready to pay and asks others to put at stake. Amounts are wei, windows seconds."""

    steps: int
    interval: int
    draws: int = 3
    wei_per_work_unit: int = GWEI
    verifier_share: int = 4
    """The verifier's fee is the maximum price divided by this."""
    stake_factor: int = 2
    """Stakes are the maximum price times this: more than a cheat could gain."""
    bond_divisor: int = 2
    """A challenger's bond is the maximum price divided by this."""
    margin: int = MARGIN
    """Factor on the distances that the profile has seen. 0 asks for exact training: no profile, equal roots."""
    rerun_count: int = RERUNS
    """Reruns of each profiled segment."""
    profiled: int = PROFILED
    """Segments that are profiled, if the task has so many."""
    profile_window: int = 24 * 3600
    training_window: int = 24 * 3600
    verification_window: int = 24 * 3600
    challenge_window: int = 24 * 3600
    clock: int = 6 * 3600
    bid_window: int = 3600
    """For bids, and again for revealing them."""
    seat_window: int = 3600
    watch_window: int = 24 * 3600
    disclosure_window: int = 3600
    jackpot_factor: int = 1
    """The jackpot is the maximum price times this."""
    looks: int = LOOKS
    look_margin: int = LOOK_MARGIN


class Submitter(Role):
    """Asks for a training and pays for it."""

    def submit(
        self,
        capture: Capture,
        offer: Offer,
        model: str = "",
        optimizer: str = "",
        start: Start = GIVEN,
    ) -> bytes:
        """Publish the task, put it on chain with its fee escrowed; returns the task's id.

        The escrow is an upper bound, from the work in the graph; it is locked from this party's free money in the
        vault, and what isn't needed is free again at settlement.
        """
        digest, document = task.publish(
            self.store,
            capture,
            steps=offer.steps,
            interval=offer.interval,
            model=model,
            optimizer=optimizer,
            start=start,
        )
        work = document.work * offer.steps
        price = work * offer.wei_per_work_unit
        verifier_fee = price // offer.verifier_share
        exact = offer.margin == 0
        reruns = 0 if exact else offer.rerun_count
        looks = 0 if exact else offer.looks
        programs = rerun_programs(capture.program, reruns, looks)
        terms = Terms(
            program=document.program_hash,
            constants=document.constants_root,
            initial_state=document.initial_state_root,
            document=bytes.fromhex(digest),
            reruns=rerun_programs_root(programs),
            steps=offer.steps,
            interval=offer.interval,
            draws=offer.draws,
            work_units=work,
            unit_price=offer.wei_per_work_unit << 32,
            second_price=0,
            solver_stake=price * offer.stake_factor,
            verifier_stake=price * offer.stake_factor,
            bond=price // offer.bond_divisor,
            verifier_fee=verifier_fee,
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
        return self.market.registry.submit(self.wallet, terms)
