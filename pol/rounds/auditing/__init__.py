"""Audits of a training of many: sources by roots, executions by replay."""
