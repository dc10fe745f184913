// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Settlement
/// @notice How slashed money is split. What a share leaves goes to the treasury, so the whole of a slash never goes to one party,
/// least of all to the one that proved it. `pol.incentives.payouts` mirrors these rules.
library Settlement {
    /// @notice Basis points in a whole.
    uint256 internal constant WHOLE = 10_000;
    /// @notice Of the stake of a solver that is rejected or misses its deadline, to the submitter.
    uint256 internal constant SUBMITTER_OF_SOLVER_STAKE = 5_000;
    /// @notice Of the stake of a verifier that misses its deadline, to the submitter.
    uint256 internal constant SUBMITTER_OF_VERIFIER_STAKE = 5_000;
    /// @notice Of the stake of a verifier that lost a dispute, to the challenger.
    uint256 internal constant CHALLENGER_OF_VERIFIER_STAKE = 5_000;
    /// @notice Of the bond of a challenger that lost a dispute, to the verifier.
    uint256 internal constant VERIFIER_OF_BOND = 5_000;

    /// @notice Failed challenges that double the bond. The last doubling leaves it below 2^192, so a share of it can't overflow; long
    /// before, it is more than anybody pays for a delay.
    uint8 internal constant MAX_DOUBLINGS = 64;

    /// @notice What a challenger of a verdict that withstood `failures` challenges puts up: each doubles it.
    function bondAfter(uint128 bond, uint8 failures) internal pure returns (uint256) {
        return uint256(bond) << failures;
    }

    /// @notice `amount * points / 10000`, rounded down; the treasury gets what rounding leaves.
    function shareDown(uint256 amount, uint256 points) internal pure returns (uint256) {
        return amount * points / WHOLE;
    }
}
