"""Rows that a mask selects: all rows with a mask, since a program has no shapes that depend on data.

`x[mask]` has as many rows as the mask is true, which only the data decides. While the user's code is traced, such a
tensor is a `SelectedRows`: all rows, which of them are selected, and how many. Functions of each row are run on all;
reductions and writes count the selected ones. Every other function of them is refused.
"""

import pol.graph.capture.replacements.selections.losses
import pol.graph.capture.replacements.selections.packed_sequences
import pol.graph.capture.replacements.selections.reading
import pol.graph.capture.replacements.selections.reductions
import pol.graph.capture.replacements.selections.writing  # noqa: F401  # they enter their functions
from pol.graph.capture.replacements.selections.functions import has_selected_rows, of_selected_rows

__all__ = ["has_selected_rows", "of_selected_rows"]
