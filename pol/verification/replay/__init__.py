"""Canonical replay of segments and of whole tasks."""
