"""All parties, and what each of them does next: most tests here have several of them."""

from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.submitter.submitter import Submitter
from pol.roles.submitter.submitter_decisions import next_of_submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.whistleblower import FalseClaim, Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

__all__ = [
    "FalseClaim", "Solver", "Submitter", "Verifier", "Whistleblower", "next_of_solver", "next_of_submitter",
    "next_of_verifier", "next_of_whistleblower",
]  # fmt: skip
