"""Profiles: seeded reruns of a task, their distances, and the thresholds that follow."""
