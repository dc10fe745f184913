"""Deployments: artifacts, addresses, plan, parameters, checks."""
