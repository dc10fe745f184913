"""`PYTHONPATH=tests python -m lab.operations > docs/operations.md`, in the root of the repository."""

from pathlib import Path

from lab.operations import Measurements, document

print(document(Measurements.read(Path("docs"))), end="")
