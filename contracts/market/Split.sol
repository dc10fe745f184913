// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Split
/// @notice How slashed money is split. What a share leaves goes to the fund of the jackpot, so the whole of a slash
/// never goes to one party, least of all to the one that proved it. `pol.incentives.payouts` mirrors these rules.
library Split {
    /// @notice Basis points in a whole.
    uint256 internal constant WHOLE = 10_000;
    /// @notice Of the stake of a solver that is rejected, misses its deadline or withholds data, to the submitter.
    uint256 internal constant SUBMITTER_OF_SOLVER_STAKE = 5_000;
    /// @notice Of the stake of a solver that withholds data, to whoever asked for them. It is small because that may be
    /// a friend of the solver's, who brings back what the solver is about to lose anyhow.
    uint256 internal constant DEMANDER_OF_SOLVER_STAKE = 625;
    /// @notice Of the stake of a verifier (not of a profiler) that misses its deadline, to the submitter.
    uint256 internal constant SUBMITTER_OF_VERIFIER_STAKE = 5_000;
    /// @notice Of the same stake, to the account that claims the default: it has brought the rounds of the beacon,
    /// which nobody else may want.
    uint256 internal constant CLAIMER_OF_VERIFIER_STAKE = 625;
    /// @notice Of the stake of a verifier that lost a dispute or leaked its secret, to who proved it.
    uint256 internal constant CHALLENGER_OF_VERIFIER_STAKE = 5_000;
    /// @notice Of the bond of a challenger that lost a dispute, to the verifier.
    uint256 internal constant VERIFIER_OF_BOND = 5_000;
    /// @notice Of the price that a solver is paid, to the treasury on top of it.
    uint256 internal constant TREASURY_OF_PRICE = 50;
    /// @notice Units of work that `Terms.unitPrice` pays.
    uint256 internal constant WORK = 1 << 32;

    /// @notice So many doublings lead from the smallest bond that `TermsRules` admits to the largest.
    uint256 internal constant MAX_DOUBLINGS = 3;

    /// @notice What a challenger puts up: the bond of the terms, doubled for each challenge that the verdict has seen
    /// before, but never more than the challenger wins if it is right. So nobody is priced out by challenges of others,
    /// whoever they are.
    function bondOf(uint128 bond, uint128 verifierStake, uint256 earlier) internal pure returns (uint256) {
        uint256 doubled = uint256(bond) << (earlier < MAX_DOUBLINGS ? earlier : MAX_DOUBLINGS);
        uint256 reward = down(verifierStake, CHALLENGER_OF_VERIFIER_STAKE);
        return doubled < reward ? doubled : reward;
    }

    /// @notice The most that a solver can be paid: work times price, rounded up.
    function maximumPrice(uint128 workUnits, uint128 unitPrice) internal pure returns (uint256) {
        return (uint256(workUnits) * unitPrice + WORK - 1) / WORK;
    }

    /// @notice What one second look costs the solver that causes it: it has `looks` reruns of one segment, and `fee` is
    /// for the replay of `draws` of them; rounded up.
    function lookFee(uint128 fee, uint32 looks, uint32 draws) internal pure returns (uint256) {
        return (uint256(fee) * looks + draws - 1) / draws;
    }

    /// @notice `amount * points / 10000`, rounded down.
    function down(uint256 amount, uint256 points) internal pure returns (uint256) {
        return amount * points / WHOLE;
    }

    /// @notice `amount * points / 10000`, rounded up.
    function up(uint256 amount, uint256 points) internal pure returns (uint256) {
        return (amount * points + WHOLE - 1) / WHOLE;
    }
}
