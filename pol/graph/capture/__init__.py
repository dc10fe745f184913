"""Captures ordinary PyTorch training code as a step program. The only part of pol.graph that imports torch."""

from pol.graph.capture.assemble import capture, to_words
from pol.graph.capture.check_capture import check_capture
from pol.graph.capture.initial_weights import capture_initialization
from pol.graph.capture.loop import Loop
from pol.graph.capture.shapes import capture_shapes
from pol.graph.captured_step import Capture, CapturedInitialization, CapturedShapes

__all__ = [
    "Capture",
    "CapturedInitialization",
    "CapturedShapes",
    "Loop",
    "capture",
    "capture_initialization",
    "capture_shapes",
    "check_capture",
    "to_words",
]
