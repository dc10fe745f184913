// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC2771Context} from "@openzeppelin/contracts/metatx/ERC2771Context.sol";

/// @title RelayedCaller
/// @notice Who acts: the caller, or whoever has signed what the trusted forwarder relays (ERC-2771, EIP-712).
/// @dev What inherits this never takes several calls in one, nor delegates a call to itself: a relayed party stands in
/// the last bytes of the call's data, and who could write inner data could write another party there.
abstract contract RelayedCaller is ERC2771Context {
    /// @param forwarder The only one that is trusted, for ever; zero if nothing is relayed.
    constructor(address forwarder) ERC2771Context(forwarder) {}

    /// @dev For every verb of a party, instead of `msg.sender`.
    function _party() internal view returns (address) {
        return _msgSender();
    }
}
