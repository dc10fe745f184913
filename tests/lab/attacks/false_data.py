"""Lies about the data: order, content, repetition. The task's constants hold all of it."""

import numpy as np
from numpy.typing import NDArray

from lab.attacks.attack_target import Floats, State, numbers, words_of
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.shortcuts import FOLKLORE
from pol.commitments.keccak import keccak256
from pol.commitments.tensor import tensor_root
from pol.execution.cpu import CpuExecutor
from pol.training.task import task_tensors
from pol.training.task.task_document import ORDER, order_root

THUDI = "Thudi et al. 2022, arXiv:2110.11891"


def other_order(workshop: Workshop) -> Forgery:
    """The same samples in another order."""
    order = workshop.random.permutation(workshop.target.order())
    return Forgery(workshop.run(workshop.target.with_order(order)))


def declared_order(workshop: Workshop) -> Forgery:
    """Another order, and the learning proof says so."""
    target = workshop.target
    order = workshop.random.permutation(target.order())
    constants = target.constants_with(ORDER, np.ascontiguousarray(order, np.uint32))
    root = order_root(target.task.program, target.task.names, constants)
    return Forgery(workshop.run(CpuExecutor(target.task.program, constants)), order_root=root)


def neighbours_swapped(workshop: Workshop) -> Forgery:
    """Two neighbouring batches of a tenth of the segments change places: the least that order can be lied about."""
    target = workshop.target
    order = target.order()
    for segment in workshop.chosen(0.1):
        first = segment * target.interval + target.interval // 2
        order[[first - 1, first]] = order[[first, first - 1]]
    return Forgery(workshop.run(target.with_order(order)))


def repeated_batches(workshop: Workshop) -> Forgery:
    """Every batch is used twice in a row: half of the data is never read."""
    order = workshop.target.order()
    order[1::2] = order[: order.shape[0] // 2 * 2 : 2]
    return Forgery(workshop.run(workshop.target.with_order(order)))


def half_batches(workshop: Workshop) -> Forgery:
    """Half of each batch, counted twice: half of the work."""
    target = workshop.target
    order = target.order()
    half = order.shape[1] // 2
    order[:, half : 2 * half] = order[:, :half]
    return Forgery(_run_on(workshop, order))


def stale_updates(workshop: Workshop) -> Forgery:
    """Every second step repeats the update of the step before: half of the work."""
    target = workshop.target
    state, states = workshop.start, [workshop.start]
    previous = state
    for step in range(target.task.document.steps):
        if step % 2:

            def again(place: int, values: Floats, before: State = previous) -> Floats:
                repeated: Floats = values + (values - numbers(before[place]))
                return repeated

            state = workshop.ticked(workshop.with_numbers(state, again), 1)
        else:
            previous, state = state, workshop.train(state, step, 1)
        if (step + 1) % target.interval == 0:
            states.append(state)
    return Forgery(states)


def poisoned(workshop: Workshop) -> Forgery:
    """One sample in a hundred has another label."""
    target = workshop.target
    name = target.task.names.constants[1]
    labels = target.task.constants[1].copy()
    chosen = workshop.random.permutation(labels.size)[: labels.size // 100]
    labels[chosen] = (labels[chosen] + 1) % 10
    return Forgery(workshop.run(CpuExecutor(target.task.program, target.constants_with(name, labels))))


def one_pixel(workshop: Workshop) -> Forgery:
    """One value of one sample is another: only the segments that see the sample are touched."""
    target = workshop.target
    name = target.task.names.constants[0]
    images = numbers(target.task.constants[0]).copy()
    images[workshop.target.order()[0, 0], 27] += np.float32(0.25)
    return Forgery(workshop.run(CpuExecutor(target.task.program, target.constants_with(name, words_of(images)))))


def truncated_hash(workshop: Workshop) -> Forgery:
    """Other data under the same printed form, which drops the middle of an array; the proof names the task's data.

    What a hash of the printed form would not see is trained on and declared: the digest of the file of constants is
    another, so it can only be a lie about the content.
    """
    target = workshop.target
    task = target.task
    changed = hidden_from_print(numbers(task.constants[0]))
    constants = target.constants_with(task.names.constants[0], words_of(changed))
    file = keccak256(task_tensors.encode(task.names.constants, task.program.constants, constants)).hex()
    same_print = np.array_repr(numbers(task.constants[0])) == np.array_repr(changed)
    same_root = tensor_root(task.program.constants[0], constants[0]) == tensor_root(
        task.program.constants[0], task.constants[0]
    )
    states = workshop.run(CpuExecutor(task.program, constants))
    return Forgery(
        states,
        damage={
            "same printed array": float(same_print),
            "same root": float(same_root),
            "same file": float(file == task.document.constants),
        },
    )


def hidden_from_print(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Other values that numpy prints the same way: it leaves out the middle of a large array."""
    changed = values.copy()
    middle = slice(values.shape[0] // 3, 2 * values.shape[0] // 3)
    changed[middle] = changed[middle][::-1]
    return changed


def _run_on(workshop: Workshop, order: NDArray[np.int64]) -> list[State]:
    """A training on an order with repetitions: a sample that repeats within a batch costs only once."""
    target = workshop.target
    executor = target.with_order(order)
    state, states = workshop.start, [workshop.start]
    for step in range(target.task.document.steps):
        state = workshop.train(state, step, 1, executor, len(np.unique(order[step])) / order.shape[1])
        if (step + 1) % target.interval == 0:
            states.append(state)
    return states


ATTACKS = (
    Attack("other-order", "the same samples in another order", other_order, THUDI),
    Attack("declared-order", "the same, and the proof says so", declared_order, THUDI),
    Attack("swapped-batches", "two neighbouring batches change places in 10 % of the segments", neighbours_swapped),
    Attack("repeated-batches", "every batch twice in a row", repeated_batches, FOLKLORE),
    Attack("half-batches", "half of each batch, counted twice", half_batches, FOLKLORE),
    Attack("stale-updates", "every second step repeats the update before", stale_updates, FOLKLORE),
    Attack("poisoned-labels", "1 % of the samples have another label", poisoned, FOLKLORE),
    Attack("one-pixel", "one value of one sample is another", one_pixel),
    Attack("truncated-hash", "other data that prints the same way", truncated_hash, FOLKLORE),
)
