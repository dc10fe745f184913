"""Workers of pipelines that lie: about activations, gradients, changes, buffers and bases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.gpt_stages import gpt_stages
from pol.decentralised.pipelines.pipeline import HEAD, forward
from pol.decentralised.pipelines.pipeline_steps import SEEN_IN
from pol.decentralised.pipelines.protocol_models import BASES
from pol.rounds.auditing.claim_replay import load_constants, load_phase
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.message import slots_of
from pol.rounds.plan.source_rules import ClaimPlace
from pol.verification.replay.canonical_replay import replay_every

LYING_ROUND = 1
Floats = np.ndarray


class PhaseLiar(ClaimAuthor):
    """Lies in all claims of one phase in one round."""

    phase = ""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if place.round != LYING_ROUND or self.plan.phases[place.phase].name != self.phase:
            return super().run(place, start, first_step, steps)
        return self.lie(place, start, first_step, steps)

    def lie(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        """The false end: by default a true one, with something `changed`."""
        end = super().run(place, start, first_step, steps)
        return self.changed(place, list(start), end)

    def changed(self, place: ClaimPlace, start: list[Words], end: list[Words]) -> list[Words]:
        """The false end, out of the start and the true end."""
        raise NotImplementedError

    def slot(self, place: ClaimPlace, name: str) -> int:
        """The number of a slot."""
        return slots_of(load_phase(self.store, self.plan.phases[place.phase]).names, [name])[0]


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
