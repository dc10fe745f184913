"""What a design of `pol.incentives.game.parameter_design` asks for, as rules of a deployment and terms of a task."""

from __future__ import annotations

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.chain.deployment_rules import GameRules, MarketRules
from pol.chain.desks.task_registry import Terms
from pol.commitments.program_hash import program_hash
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType
from pol.incentives.abi import abi_hash
from pol.incentives.game.parameter_design import Design

INTERVAL = 2
"""Steps of a segment: what is disputed first are steps."""
MARGIN = 4
BID_WINDOW, PROFILE_WINDOW, COMMIT_WINDOW = 600, 600, 3600
"""Seconds. Commitments of many watchers take as many blocks."""


def toy_program() -> StepProgram:
    """The smallest there is: a number that is added to itself."""
    number = TensorType(DType.F32, ())
    builder = Builder(1)
    body = builder.build(builder.emit(Op.FADD, builder.input(0), builder.input(0)))
    node = Node(number, (Operand(Source.STATE, 0, number, Affine(0, (0,))),), (Input(InputKind.OPERAND, 0),), body)
    program = StepProgram((Slot(Component.PARAMETER, number, 0),), (number,), (node,))
    program.validate()
    return program


def game_rules(found: Design) -> GameRules:
    """The graces that a design asks for."""
    return GameRules(replay_grace=found.windows.replay_grace, move_grace=found.windows.move_grace)


def market_rules(found: Design) -> MarketRules:
    """The deployment that a design asks for."""
    chance, windows = found.chance, found.windows
    return MarketRules(
        exit_delay=windows.exit_delay,
        watchers=chance.watchers,
        shares=chance.shares,
        rate=chance.rate,
        commit_window=COMMIT_WINDOW,
        catch_window=windows.catch,
    )


def terms_of(found: Design, program: StepProgram, reruns: bytes) -> Terms:
    """The terms that a design asks for; one segment is profiled by one rerun."""
    stakes, windows = found.stakes, found.windows
    return Terms(
        program=program_hash(program),
        constants=abi_hash("constants"),
        initial_state=abi_hash("initial state"),
        document=abi_hash("document"),
        reruns=reruns,
        steps=stakes.segments * INTERVAL,
        interval=INTERVAL,
        draws=stakes.draws,
        work_units=1 << 32,
        unit_price=stakes.price,
        second_price=0,
        solver_stake=stakes.solver_stake,
        verifier_stake=stakes.verifier_stake,
        bond=stakes.bond,
        verifier_fee=stakes.verifier_fee,
        jackpot=stakes.jackpot,
        rerun_count=1,
        profiled=1,
        margin=MARGIN,
        looks=0,
        look_margin=0,
        profile_window=PROFILE_WINDOW,
        bid_window=BID_WINDOW,
        seat_window=windows.seat,
        training_window=windows.training,
        verification_window=windows.verification,
        watch_window=windows.watch,
        disclosure_window=windows.disclosure,
        challenge_window=windows.challenge,
        clock=windows.clock,
    )
