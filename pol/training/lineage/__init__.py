"""Lineage: trainings that begin with the end of another one."""
