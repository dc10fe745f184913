"""A solver with a loop of its own: drawn weights, the recorder beside stock PyTorch, and the market pays."""

from all_parties import Solver, Verifier
from role_market import Town, awarded, gain, profiled, settle, verified

from pol import Recorder
from pol.chain.desks.task_registry import TaskOutcome
from pol.demo import digits
from pol.graph.capture import capture, capture_initialization
from pol.roles.submitter.submitter import TOLERANT, Offer, Submitter
from pol.training.task import initialization
from pol.training.task.task_randomness import TaskRandomness
from pol.training.task.task_start import TaskStart

STEPS, INTERVAL, SEED = 100, 25, 11


def build() -> digits.DigitClassifier:
    return digits.DigitClassifier(16)


def test_the_market_pays_for_a_loop_of_ones_own(town: Town) -> None:
    submitter, verifier, solver = town.join(Submitter, "s"), town.join(Verifier, "v"), town.join(Solver, "t")
    with TaskRandomness(SEED).initialization():
        model = build()
    order, data = digits.order(1, STEPS), digits.dataset()
    step = capture(model, digits.loss_function, digits.build_optimizer(model), data, order)
    start = TaskStart(
        initialization=initialization.publish_initialization(submitter.store, capture_initialization(build, SEED, step))
    )
    offer = Offer(STEPS, INTERVAL, draws=2, margin=TOLERANT, rerun_count=2, profiled=1, looks=0)
    task_id = submitter.submit(step, offer, start=start)
    profiled(verifier, task_id)
    awarded(solver, task_id)

    own = build()
    optimizer = digits.build_optimizer(own)
    recorder = Recorder(solver.store, own, optimizer, task=solver.task(task_id))
    recorder.resume()
    for rows in order:
        optimizer.zero_grad()
        digits.loss_function(own(data[0][rows]), data[1][rows]).backward()
        optimizer.step()
        recorder.step()
    recorder.close()
    solver.commit(task_id, recorder.learning_proof()[0])

    assert [level.kind for level in verifier.task(task_id).lineage] == ["initialisation"]
    verified(verifier, task_id)
    settle(submitter, task_id)
    state = submitter.market.registry.task(task_id)
    assert state.outcome is TaskOutcome.ACCEPTED
    assert gain(solver) == state.price
