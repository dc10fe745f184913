"""The attack battery: solvers that cheat, each by a published or an invented trick.

An honest role never imports it. docs/attacks.md says what each one costs and how it is found.
"""
