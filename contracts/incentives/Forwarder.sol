// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC2771Forwarder} from "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol";

/// @title Forwarder
/// @notice Relays what parties have signed to the contracts that trust it; whoever relays pays the gas. Deployed beside
/// a vault.
contract Forwarder is ERC2771Forwarder {
    /// @notice The EIP-712 domain: this name, version "1".
    constructor() ERC2771Forwarder("pol forwarder") {}
}
