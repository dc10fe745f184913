"""The document of a deployment of the contracts of rounds: what workers and auditors read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from eth_typing import ChecksumAddress
from web3 import Web3

from pol.chain.deployments.deployment import require_chain
from pol.chain.node.connection import Connection
from pol.chain.rounds.round_contracts import RoundAddresses, RoundContracts
from pol.commitments import canonical_json
from pol.errors import ProtocolError


@dataclass(frozen=True)
class RoundsDeployment:
    """The addresses of the contracts of rounds on one chain."""

    chain_id: int
    block: int
    """The block of the first contract: no event is older."""
    treasury: ChecksumAddress
    desks: RoundAddresses

    def to_json(self) -> str:
        """The document of the addresses."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RoundsDeployment:
        """Read the document of `to_json`. Raises ProtocolError: the text is something else."""
        document = canonical_json.parse(text.encode(), "the document of a deployment")
        try:
            desks = {
                field.name: Web3.to_checksum_address(document["desks"][field.name]) for field in fields(RoundAddresses)
            }
            treasury = Web3.to_checksum_address(document["treasury"])
            return cls(int(document["chain_id"]), int(document["block"]), treasury, RoundAddresses(**desks))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise ProtocolError(
                f"this is no document of the contracts of rounds ({error}): name the file of `pol deploy --rounds`"
            ) from error

    def contracts(self, connection: Connection) -> RoundContracts:
        """The contracts. Raises OperationalError: the connection leads to another chain."""
        require_chain(connection, self.chain_id)
        return RoundContracts.at(connection, self.desks, self.block)
