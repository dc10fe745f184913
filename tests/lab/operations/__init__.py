"""What is measured of operations, and the document that shows it beside their definitions."""

from lab.operations.document import document
from lab.operations.measurements import Measurements, functions_in

__all__ = ["Measurements", "document", "functions_in"]
