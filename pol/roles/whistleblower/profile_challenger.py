"""Challenges of profiles: measures a profile again, and disputes what is false in it."""

from __future__ import annotations

from functools import cached_property

from pol.chain.desks.profiles import PostedProfile, ProvedProgram, Witness, conviction_evidence, witness_of
from pol.chain.desks.verdicts import leak_evidence
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.program_hash import program_hash, program_header
from pol.errors import OperationalError, ProtocolError
from pol.graph.step_program import Component
from pol.incentives.forced_errors import commitment
from pol.roles.party.profile_evidence import disputed
from pol.roles.party.role import Role
from pol.roles.process.defence import require_defensible
from pol.roles.process.work_time import move_steps
from pol.roles.whistleblower.second_opinion import FLAKY, SecondOpinion
from pol.verification.profile.profile_challenge import ProfileCharge, ProfileChargeKind, find_false_parts
from pol.verification.profile.profile_claim import ProfileClaim
from pol.verification.profile.profile_document import load_profile
from pol.verification.profile.profiling import measure_profile, rerun_programs


def report_leak(role: Role, task_id: bytes, secret: bytes) -> None:
    """Show a seated verifier's secret before it may be disclosed, for half of its stake.

    Pay for inclusion in the next block: the second transaction makes the secret public.

    Raises:
        ProtocolError: it isn't the secret of that seat; nothing is announced.
        Reverted: it is too late, or somebody has shown it.
        OperationalError: the node failed; repeat the call, the announcement stays.
    """
    seating = role.market.seats.seating(task_id)
    if seating.commitment != commitment(bytes.fromhex(seating.holder[2:]), task_id, secret):
        raise ProtocolError(f"this isn't the secret of seat {seating.number}: its source is wrong")
    role.market.verdicts.announce_evidence(role.wallet, task_id, leak_evidence(secret))
    role.market.verdicts.report_leak(role.wallet, task_id, secret)


def convict(role: Role, task_id: bytes, posted: PostedProfile, rerun: Witness, component: Component) -> None:
    """Show a rerun that implies a higher threshold than the posted one, for half of the profiler's stake.

    Raises:
        Reverted: the posted threshold covers the rerun, it is too late, or somebody has shown it.
        OperationalError: the node failed; repeat the call, the announcement stays.
    """
    role.market.profiles.announce_evidence(role.wallet, task_id, conviction_evidence(rerun, component))
    role.market.profiles.convict(role.wallet, task_id, posted.portions, rerun, component)


class ProfileChallenger(SecondOpinion):
    """A whistleblower's checks and challenges of profiles."""

    @cached_property
    def _measured(self) -> dict[tuple[bytes, int], ProfileClaim]:
        return {}

    @cached_property
    def _checked(self) -> dict[tuple[bytes, int], list[ProfileCharge]]:
        return {}

    def check_profile(self, task_id: bytes) -> list[ProfileCharge]:
        """The false parts of the posted profile, most basic first, by measuring all of it again."""
        return self._false(task_id, self.measured(task_id))

    def checked_twice(self, task_id: bytes) -> list[ProfileCharge]:
        """As `check_profile`; where something seems false, all is measured a second time before anything is said."""
        number = self.market.profiles.standing(task_id).number
        if (task_id, number) not in self._checked:
            first = self.check_profile(task_id)
            if first and self._false(task_id, self.measured(task_id, 1)) != first:
                self.forget(task_id)
                raise OperationalError(FLAKY)
            self._checked[task_id, number] = first
        return self._checked[task_id, number]

    def has_checked(self, task_id: bytes) -> bool:
        """Whether `checked_twice` has its answer."""
        return (task_id, self.market.profiles.standing(task_id).number) in self._checked

    def _false(self, task_id: bytes, own: ProfileClaim) -> list[ProfileCharge]:
        posted = self.market.profiles.posted(task_id)
        shown = self._shown(task_id, posted)
        if shown is not None:
            return find_false_parts(own, shown)
        # Without the document only the reruns that the chain has shown as witnesses can be proved false.
        reruns = list(own.reruns)
        for witness in posted.witnesses:
            reruns[witness.index] = witness.rerun
        first, second, third = (witness.index for witness in posted.witnesses)
        known = ProfileClaim(own.margin, posted.portions, tuple(reruns), (first, second, third))
        proved = {witness.index for witness in posted.witnesses}
        return [
            charge
            for charge in find_false_parts(own, known)
            if charge.kind in {ProfileChargeKind.PORTION, ProfileChargeKind.REFERENCE} or charge.index in proved
        ]

    def challenge_profile(self, task_id: bytes, charge: ProfileCharge) -> int:
        """Put up the bond and open this party's own version of a part of the profile. Returns the dispute's number."""
        terms = self.market.registry.terms(task_id)
        self.policy.require_clock(terms)
        require_defensible(self, task_id, terms, self.market.profile_game, move_steps(terms, verifies=False))
        task, posted, witness = self.task(task_id), self.market.profiles.posted(task_id), None
        if charge.kind in {ProfileChargeKind.RERUN, ProfileChargeKind.DISTANCE}:
            witness = self._witness(task_id, posted, charge.index)
        evidence = self.profile_evidence(task_id)
        program, proved = evidence.program(charge), None
        if charge.kind is ProfileChargeKind.RERUN:
            proved = self._proved(task_id, charge.index % terms.rerun_count)
        rerun = None if witness is None else witness.rerun
        claim = disputed(task, posted.portions, terms.rerun_count, charge, program_hash(program), rerun)
        header = program_header(program)
        payload = evidence.player(charge).open(claim.first(header, self.market.profile_game.bits))
        arguments = (posted.portions, charge, header, payload, witness, proved)
        self.require_kept()
        return self.market.profiles.challenge(self.wallet, task_id, *arguments)

    def convict_profile(self, task_id: bytes, charge: ProfileCharge) -> None:
        """Show a rerun that implies a higher threshold than the posted one: the profile is void at once."""
        if charge.kind is not ProfileChargeKind.UNDERSTATED or charge.component is None:
            raise ProtocolError(f"{charge.kind.name} needs a dispute")
        posted = self.market.profiles.posted(task_id)
        witness = self._witness(task_id, posted, charge.index)
        convict(self, task_id, posted, witness, charge.component)

    def measured(self, task_id: bytes, opinion: int = 0) -> ProfileClaim:
        """This party's own measurement on the task's terms, made once for each opinion."""
        key = (task_id, opinion)
        if key not in self._measured:
            task, terms = self.task(task_id), self.market.registry.terms(task_id)
            replayer = self.replayer(task_id, opinion)
            own = measure_profile(task, replayer, terms.profiled, terms.rerun_count, terms.margin)
            self._measured[key] = own.claim
        return self._measured[key]

    def _shown(self, task_id: bytes, posted: PostedProfile) -> ProfileClaim | None:
        """The claim in the profile document; None if the document is missing or differs from what was posted."""
        try:
            claim = load_profile(self.store, posted.digest.hex(), self.task(task_id)).claim
        except (OperationalError, ProtocolError):
            return None
        told = (claim.portions, claim.root, claim.witnesses)
        stands = (posted.portions, posted.root, tuple(witness.index for witness in posted.witnesses))
        return claim if told == stands else None

    def _witness(self, task_id: bytes, posted: PostedProfile, index: int) -> Witness:
        for witness in posted.witnesses:
            if witness.index == index:
                return witness
        shown = self._shown(task_id, posted)
        if shown is None:
            raise OperationalError(f"the document of the profile can't be read, so rerun {index} can't be proved")
        return witness_of(shown, shown.log, index)

    def _proved(self, task_id: bytes, rerun: int) -> ProvedProgram:
        terms = self.market.registry.terms(task_id)
        programs = rerun_programs(self.task(task_id).program, terms.rerun_count, terms.looks)
        return programs[rerun], CheckpointLog(programs).inclusion(rerun)

    def reclaim_profile(self, task_id: bytes) -> list[int]:
        """Settle this party's disputes about the profile that are over or moot; returns their numbers."""
        numbers = self.market.profiles.settleable(task_id, self.wallet.address)
        for number in numbers:
            self.market.profiles.settle_once(self.wallet, number)
        return numbers

    def forget(self, task_id: bytes) -> None:
        """As `ReplayingParty.forget`, with all measurements."""
        super().forget(task_id)
        for opinion in range(2):
            self._measured.pop((task_id, opinion), None)
