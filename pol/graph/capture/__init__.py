"""Captures ordinary PyTorch training code as a step program. The only part of pol.graph that imports torch."""

from pol.graph.capture.assemble import Capture, capture, to_words
from pol.graph.capture.initial_weights import CapturedInitialization, capture_initialization
from pol.graph.capture.loop import Loop

__all__ = ["Capture", "CapturedInitialization", "Loop", "capture", "capture_initialization", "to_words"]
