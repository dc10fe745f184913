"""The only user of web3: connections, wallets, deployment, and typed bindings of the contracts."""
