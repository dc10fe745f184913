"""On-chain verifiers of proofs of steps (contracts/zk/)."""

from __future__ import annotations

from collections.abc import Sequence

from eth_typing import ChecksumAddress
from hexbytes import HexBytes

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding, deploy_contract


class StepVerifier(Binding, contract="Groth16Verifier"):
    """A verifier of one circuit's proofs; both kinds have the same ABI."""

    def holds(self, context: bytes, hashes: Sequence[bytes], proof: bytes) -> bool:
        """Whether a proof holds. Raises Reverted: it doesn't, and the verifier reverts."""
        return bool(self.read("verify", context, list(hashes), proof))


def deploy_exact(wallet: Wallet, verifying_key: bytes) -> ChecksumAddress:
    """Deploy a verifier of Groth16 proofs for this key; its address."""
    return deploy_contract(wallet, "Groth16Verifier", verifying_key)


def deploy_generated(wallet: Wallet, bytecode: str) -> tuple[ChecksumAddress, ChecksumAddress]:
    """Deploy the verifier that EZKL generated and the adapter for a market; both addresses.

    Raises:
        OperationalError: the node fails, or reports no address.
    """
    address = wallet.deploy(bytes(HexBytes(bytecode)))
    return address, deploy_contract(wallet, "EzklStepVerifier", address)
