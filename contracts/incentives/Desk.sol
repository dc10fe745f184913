// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "./IStakeVault.sol";
import {RelayedCaller} from "./RelayedCaller.sol";

/// @title Desk
/// @notice A contract that moves what the vault holds for its parties. It is deployed after the vault, learns the other
/// desks once, and is named to the vault last.
/// @dev A desk has a function `wire` with the modifier `wiring` if it knows other desks.
abstract contract Desk is RelayedCaller {
    /// @notice Holds all value.
    IStakeVault public immutable vault;

    bool private wired;

    /// @notice Only the deployer, and only once; or only the desk, or the party, that does this.
    error NotAllowed(address caller);

    /// @dev The vault's deployer names the other desks, for ever.
    modifier wiring() {
        if (msg.sender != vault.deployer() || wired) revert NotAllowed(msg.sender);
        wired = true;
        _;
    }

    /// @dev One other desk alone.
    modifier only(address desk) {
        if (msg.sender != desk) revert NotAllowed(msg.sender);
        _;
    }

    /// @dev Any desk of the deployment.
    modifier onlyDesk() {
        if (!vault.isDesk(msg.sender)) revert NotAllowed(msg.sender);
        _;
    }

    /// @param vault_ Whose forwarder is this desk's, too.
    constructor(IStakeVault vault_) RelayedCaller(vault_.trustedForwarder()) {
        vault = vault_;
    }
}
