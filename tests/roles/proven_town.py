"""Tasks whose steps are a circuit's, with a pinned verifier of exact proofs, and parties that work on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from eth_typing import ChecksumAddress
from role_market import OFFER, Town, awarded

from circuit_steps import CIRCUIT, INTERVAL, STEPS, drawn_step
from pol.chain.account.wallet import Wallet
from pol.chain.court.step_verifiers import deploy_exact
from pol.commitments.keccak import keccak256
from pol.roles.party.policy import PUBLIC_CHAIN, Policy, TrustedKey
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import GWEI, Submitter
from pol.zk.circuits import load_circuit
from pol.zk.exact import exact_prover
from pol.zk.exact.exact_prover import ExactKeys

SEGMENTS = STEPS // INTERVAL
EXACT = replace(OFFER, steps=STEPS, interval=INTERVAL, margin=0, looks=0, rerun_count=0, wei_per_work_unit=2000 * GWEI)


@dataclass(frozen=True)
class ProvenTown:
    """A town, the folder of a circuit's keys, and its verifier, which the town's parties trust."""

    town: Town
    root: Path
    keys: ExactKeys
    policy: Policy

    @classmethod
    def of(cls, town: Town, root: Path) -> ProvenTown:
        keys = exact_prover.setup(load_circuit(CIRCUIT), root)
        deployer = Wallet.create(town.connection, keccak256(b"deployer"))
        verifier = deploy_exact(deployer, keys.verifying_key.encode())
        trusted = {verifier: TrustedKey(CIRCUIT, keys.verifying_key.digest)}
        return cls(town, root, keys, replace(PUBLIC_CHAIN, trusted_verifiers=trusted))

    @property
    def verifier(self) -> ChecksumAddress:
        (address,) = self.policy.trusted_verifiers
        return self.town.connection.web3.to_checksum_address(address)

    def solver(self, proving_keys: Path | None = None) -> Solver:
        solver = self.town.join(Solver, "t", self.policy)
        solver.proving_keys = proving_keys or self.root
        return solver

    def submitted(self, size: float = 1.0) -> bytes:
        """A pinned task whose data and first weights are below ``size``; returns its id."""
        return self.town.join(Submitter, "s", self.policy).submit(drawn_step(size), EXACT, verifier=self.verifier)

    def trained(self, size: float = 1.0) -> bytes:
        """A pinned task whose solver ``t`` has committed an honest log, and published no proof."""
        task_id, solver = self.submitted(size), self.solver()
        awarded(solver, task_id)
        solver.train(task_id)
        return task_id
