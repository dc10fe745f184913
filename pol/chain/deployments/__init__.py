"""Deployments: addresses, plan, parameters, checks."""
