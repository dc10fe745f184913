"""Pieces of step programs that several trainers share."""
