// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame} from "../dispute/IDisputeGame.sol";
import {Desk} from "../incentives/Desk.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {IWorkerBonds} from "./IWorkerBonds.sol";
import {PlanTerms} from "./PlanTypes.sol";

/// @notice What the desk of stakes has to know of the one that pays.
interface ISettlements {
    /// @notice Settlements of a plan that have been opened.
    function settlements(bytes32 id) external view returns (uint256);
}

/// @notice What the desks of rounds know of each other.
struct RoundDesks {
    IWorkerBonds bonds;
    ISettlements shares; // pays what was escrowed
    IDisputeGame game; // of claims
}

/// @title RoundDesk
/// @notice What all desks of rounds share.
abstract contract RoundDesk is Desk {
    /// @notice Plans and stakes.
    IWorkerBonds public bonds;

    /// @notice What was signed is of another plan, or of another registration of the same document.
    error OtherPlan(bytes32 plan);
    /// @notice Another account has signed this.
    error OtherSigner(address signer);
    /// @notice Another claim than the receipt, or the source, names.
    error OtherClaim(bytes32 claim);
    /// @notice The bond is more than the caller is ready to put up.
    error BondTooHigh(uint256 bond);

    bool private immutable paysGas;

    constructor(IStakeVault vault_) Desk(vault_) {
        paysGas = vault_.asset() == address(0);
    }

    /// @notice Names the desks, by the deployer and once.
    function wire(RoundDesks calldata desks) external wiring {
        bonds = desks.bonds;
        _wired(desks);
    }

    /// @dev What else a desk has to know.
    function _wired(RoundDesks calldata desks) internal virtual {}

    /// @dev What a plan pays for so much gas, now.
    function _priceOf(PlanTerms memory t, uint256 gas_) internal view returns (uint256) {
        return t.price + (paysGas ? gas_ * block.basefee : 0);
    }

    function _requireSigner(address signer, address expected) internal pure {
        if (signer != expected) revert OtherSigner(signer);
    }

    /// @dev The terms of a plan for what names it: by its id, so what was signed under other terms counts for nothing.
    function _termsFor(bytes32 id, bytes32 plan) internal view returns (PlanTerms memory t) {
        if (id != plan) revert OtherPlan(plan);
        t = bonds.terms(id);
    }
}
