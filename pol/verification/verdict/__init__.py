"""Verdicts on single segments: the decision, the segment verification behind it, and second looks."""
