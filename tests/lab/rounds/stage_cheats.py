"""Lies in trainings whose network is cut into stages or paths: about activations, gradients, data and recovery."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments.tensor import tensor_root
from pol.decentralised.dipaco import SHARD, local
from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.gpt_stages import gpt_stages
from pol.decentralised.pipelines.pipeline import HEAD, STATE, forward, update
from pol.decentralised.pipelines.pipeline_steps import SEEN_IN
from pol.decentralised.pipelines.protocol_models import BASES
from pol.rounds.auditing.claim_replay import load_constants, load_initial, load_phase
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.message import slots_of
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.round_claim import INITIAL, BoundSlot
from pol.verification.replay.canonical_replay import replay_every

LYING_ROUND = 1
Floats = np.ndarray


class SlotLiar(ClaimAuthor):
    """Knows the numbers of slots, and which phase a claim is of."""

    def is_of(self, place: ClaimPlace, *phases: str) -> bool:
        """Whether a claim is one to lie about."""
        return place.round == LYING_ROUND and self.plan.phases[place.phase].name in phases

    def slot(self, place: ClaimPlace, name: str) -> int:
        """The number of a slot."""
        return slots_of(load_phase(self.store, self.plan.phases[place.phase]).names, [name])[0]


class PhaseLiar(SlotLiar):
    """Lies in all claims of one phase in one round."""

    phase = ""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if not self.is_of(place, self.phase):
            return super().run(place, start, first_step, steps)
        return self.lie(place, start, first_step, steps)

    def lie(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        """The false end: by default a true one, with something `changed`."""
        end = super().run(place, start, first_step, steps)
        return self.changed(place, list(start), end)

    def changed(self, place: ClaimPlace, start: list[Words], end: list[Words]) -> list[Words]:
        """The false end, out of the start and the true end."""
        raise NotImplementedError


class IdentityActivations(PhaseLiar):
    """Stage 0 leaves its blocks out: the activation is the embedding."""

    phase = forward(0)

    def lie(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        stage = gpt_stages(small_gpt.SMALL, 2)[0]
        at, altered = self.slot(place, "weights"), list(start)
        altered[at] = start[at].copy()
        altered[at][: stage.block_size] = 0  # blocks of zeros add nothing to what they get
        end = ClaimAuthor.run(self, place, altered, first_step, steps)
        end[at] = start[at]
        return end


class GradientScaler(PhaseLiar):
    """The last stage sends back a tenth of the gradient."""

    phase = HEAD

    def changed(self, place: ClaimPlace, start: list[Words], end: list[Words]) -> list[Words]:
        at = self.slot(place, "back.gradient")
        end[at] = words(floats(end[at]) * np.float32(0.1))
        return end


class GradientReplacer(PhaseLiar):
    """The last stage sends back a vector whose cosine with the gradient is 0.95."""

    phase = HEAD

    def changed(self, place: ClaimPlace, start: list[Words], end: list[Words]) -> list[Words]:
        at = self.slot(place, "back.gradient")
        gradient = floats(end[at]).astype(np.float64)
        noise = np.random.default_rng(place.part).standard_normal(gradient.shape)
        across = noise - gradient * (noise * gradient).sum() / (gradient * gradient).sum()
        across *= np.linalg.norm(gradient) / np.linalg.norm(across)
        end[at] = words((0.95 * gradient + np.sqrt(1 - 0.95**2) * across).astype(np.float32))
        return end


class WrongDelta(PhaseLiar):
    """Sends twice the change of its activations, and keeps its own buffer in order."""

    phase = forward(0)

    def changed(self, place: ClaimPlace, start: list[Words], end: list[Words]) -> list[Words]:
        at = self.slot(place, "out.scale")
        end[at] = words(floats(end[at]) * np.float32(2))
        return end


class StaleBuffer(PhaseLiar):
    """Receives a change, and leaves its buffer as it was: later epochs go wrong."""

    phase = HEAD

    def changed(self, place: ClaimPlace, start: list[Words], end: list[Words]) -> list[Words]:
        at = self.slot(place, SEEN_IN)
        end[at] = start[at]
        return end


class StaleBasis(PhaseLiar):
    """Projects onto the first basis, and not onto the one of this step."""

    phase = forward(0)

    def lie(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        phase = self.plan.phases[place.phase]
        loaded, constants = load_phase(self.store, phase), load_constants(self.store, phase, 0)
        at = loaded.names.constants.index(BASES)
        constants[at] = np.broadcast_to(constants[at][:1], constants[at].shape).copy()
        executor = self._executors(loaded.program, constants)
        return next(replay_every(loaded.program, executor, start, first_step, steps, steps))


class CovertCoefficients(PhaseLiar):
    """Writes a message of its own into the low bits of the gradient's coefficients: outside of what it computes."""

    phase = HEAD

    def changed(self, place: ClaimPlace, start: list[Words], end: list[Words]) -> list[Words]:
        at = self.slot(place, "back.coefficients")
        payload = np.random.default_rng(place.part).integers(0, 1 << 8, end[at].shape, dtype=np.uint32)
        end[at] = (end[at] & np.uint32(0xFFFFFF00)) | payload
        return end


def floats(found: Words) -> Floats:
    """Words as numbers."""
    return found.view(np.float32)


def words(numbers: Floats) -> Words:
    """Numbers as words."""
    return numbers.view(np.uint32)


def cosine(one: Words, other: Words) -> float:
    """What a validator that tolerates looks at: IOTA accepts 0.9 and more."""
    first, second = (floats(found).astype(np.float64).ravel() for found in (one, other))
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


FAILED_ROUND = 2


class OlderWeights(ClaimAuthor):
    """Restores the plan's initial weights after the failure, and says so: its sources name them."""

    def start(self, place: ClaimPlace) -> tuple[list[BoundSlot], list[Words]]:
        sources, words = super().start(place)
        if place.round == FAILED_ROUND and self.plan.phases[place.phase].name == forward(0):
            at = slots_of(load_phase(self.store, self.plan.phases[place.phase]).names, ["weights"])[0]
            number = self.plan.phases[place.phase].sources[at].initial
            sources[at] = BoundSlot(INITIAL, number, self.plan.initial[number].root)
            words[at] = load_initial(self.store, self.plan)[number]
        return sources, words


class SilentlyOlderWeights(ClaimAuthor):
    """Runs the last stage with the plan's initial weights after the failure, and claims the right start."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if place.round != FAILED_ROUND or self.plan.phases[place.phase].name != HEAD:
            return super().run(place, start, first_step, steps)
        at = slots_of(load_phase(self.store, self.plan.phases[place.phase]).names, ["weights"])[0]
        altered = list(start)
        altered[at] = load_initial(self.store, self.plan)[self.plan.phases[place.phase].sources[at].initial]
        end = super().run(place, altered, first_step, steps)
        end[at] = start[at]
        return end


class NeighborCopier(ClaimAuthor):
    """Recovers a lost stage as its left neighbor's blocks, where the plan says the mean of both."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        phase = self.plan.phases[place.phase]
        if phase.name == update(1) and phase.members == 2:
            names = load_phase(self.store, phase).names
            weights, left = slots_of(names, [STATE[0], "left"])
            end[weights] = start[left][: end[weights].size].copy()
        return end


class EasierShard(SlotLiar):
    """Trains on one document again and again, and claims to have trained on its shard."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if not self.is_of(place, *map(local, range(4))):
            return super().run(place, start, first_step, steps)
        at, altered = self.slot(place, "rows"), list(start)
        altered[at] = one_document(start[at])
        end = super().run(place, altered, first_step, steps)
        end[at] = start[at]
        return end


class FalseRouting(SlotLiar):
    """Claims that the router gives it this one document only."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if self.is_of(place, SHARD):
            at = self.slot(place, "rows")
            end[at] = one_document(end[at])
        return end


class OwnShard(SlotLiar):
    """Routes as it should, and starts its training from other rows than those that it has signed."""

    def start(self, place: ClaimPlace) -> tuple[list[BoundSlot], list[Words]]:
        sources, words = super().start(place)
        if self.is_of(place, *map(local, range(4))):
            at = self.slot(place, "rows")
            type_ = load_phase(self.store, self.plan.phases[place.phase]).program.slots[at].type
            words[at] = one_document(words[at])
            sources[at] = replace(sources[at], root=tensor_root(type_, words[at]))
        return sources, words


def one_document(rows: Words) -> Words:
    """The first of some rows, in all places."""
    return np.broadcast_to(rows[:1], rows.shape).copy()
