"""Pipelines of stages: SWARM, AQ-SGD, Protocol Models, Oobleck and CheckFree."""
