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
    /// @notice Of the stake of a solver that has lost an objection, to the objector: at least so much, for the same
    /// reason.
    uint256 internal constant OBJECTOR_OF_SOLVER_STAKE = 625;
    /// @notice The most of it, where the stake is small beside what a dispute costs.
    uint256 internal constant MOST_OF_SOLVER_STAKE = 2_500;
    /// @notice Of the stake of a verifier (not of a profiler) that misses its deadline, to the submitter.
    uint256 internal constant SUBMITTER_OF_VERIFIER_STAKE = 5_000;
    /// @notice Of the same stake, to the account that claims the default: it has brought the rounds of the beacon,
    /// which nobody else may want.
    uint256 internal constant CLAIMER_OF_VERIFIER_STAKE = 625;
    /// @notice Of the stake of a verifier that lost a dispute or leaked its secret, to who proved it.
    uint256 internal constant CHALLENGER_OF_VERIFIER_STAKE = 5_000;
    /// @notice Of the bond of a challenger that lost a dispute, to the verifier.
    uint256 internal constant VERIFIER_OF_BOND = 5_000;
    /// @notice Of the bond of a party that lost a dispute about an objection, to the other side: solver or objector.
    uint256 internal constant WINNER_OF_BOND = 5_000;
    /// @notice Of what two words that a solver doesn't serve cost it, its stake and its price: what each of them puts
    /// at risk. A coalition with three tenths of the tickets loses more by false ones than the solver.
    uint256 internal constant UNSERVED_OF_LOSS = 7_000;
    /// @notice Of that bond, to each of two that have said so, out of the solver's stake: who isn't served gains by its
    /// word though the next in its seat is an accomplice of the solver's three times in ten.
    uint256 internal constant SAYER_OF_BOND = 4_400;
    /// @notice Of the price that a solver is paid, to the treasury on top of it.
    uint256 internal constant TREASURY_OF_PRICE = 50;
    /// @notice Units of work that `Terms.unitPrice` pays.
    uint256 internal constant WORK = 1 << 32;

    /// @notice So many doublings lead from the smallest bond that `TermsRules` admits to the largest.
    uint256 internal constant MAX_DOUBLINGS = 3;
    /// @notice The same for objections, whose first bond follows the work: one unit becomes more than any stake.
    uint256 internal constant MAX_OBJECTION_DOUBLINGS = 112;

    /// @notice What a challenger puts up: the bond of the terms, doubled for each challenge that the verdict has seen
    /// before, but never more than the challenger wins if it is right. So nobody is priced out by challenges of others,
    /// whoever they are.
    function bondOf(uint128 bond, uint128 verifierStake, uint256 earlier) internal pure returns (uint256) {
        uint256 doubled = uint256(bond) << (earlier < MAX_DOUBLINGS ? earlier : MAX_DOUBLINGS);
        uint256 reward = down(verifierStake, CHALLENGER_OF_VERIFIER_STAKE);
        return doubled < reward ? doubled : reward;
    }

    /// @notice What is paid for one segment: by the price of the training or by the fee for verifying it, whichever is
    /// more; rounded up.
    function segmentPrice(uint128 price, uint64 segments, uint128 fee, uint32 draws) internal pure returns (uint256) {
        uint256 trained = (uint256(price) + segments - 1) / segments;
        uint256 verified = lookFee(fee, 1, draws);
        return trained > verified ? trained : verified;
    }

    /// @notice What an objector wins of the solver's stake: as much as it has risked, within the two shares of it.
    /// @param stake Less every second look that the terms admit (`slashable`): it is kept for its verifier.
    /// @param bond Of the objector: it follows what a dispute costs.
    /// @param tax Is left to the fund beside the submitter's share, as where data are withheld.
    function objectorReward(uint256 stake, uint256 bond, uint256 tax) internal pure returns (uint256) {
        uint256 most = down(stake, MOST_OF_SOLVER_STAKE);
        uint256 rest = stake - down(stake, SUBMITTER_OF_SOLVER_STAKE);
        uint256 untaxed = rest > tax ? rest - tax : 0;
        if (most > untaxed) most = untaxed;
        if (most > bond) most = bond;
        uint256 least = down(stake, OBJECTOR_OF_SOLVER_STAKE);
        return most > least ? most : least;
    }

    /// @notice What of a solver's stake is left if a verdict has a second look at every segment that is drawn.
    function slashable(uint128 stake, uint128 fee, uint32 looks, uint32 draws) internal pure returns (uint256) {
        return stake - draws * lookFee(fee, looks, draws);
    }

    /// @notice What an objector puts up, or who contests a counterclaim: the first bond, doubled for each objection
    /// that the proof has seen before, or each contest that is open, up to the least that an objector wins if it is
    /// right, or to the first bond if that is more.
    /// @param first Twice what the defense costs the solver; of a contester what the objector has put up.
    /// @param stake As in `objectorReward`.
    function objectionBond(uint256 first, uint256 stake, uint256 earlier) internal pure returns (uint256) {
        uint256 share = down(stake, OBJECTOR_OF_SOLVER_STAKE);
        uint256 most = first < share ? share : first;
        uint256 doubled = first << (earlier < MAX_OBJECTION_DOUBLINGS ? earlier : MAX_OBJECTION_DOUBLINGS);
        return doubled < most ? doubled : most;
    }

    /// @notice What a word that the solver doesn't serve puts at risk; no more than the verifier has staked.
    function unservedBond(uint256 price, uint128 solverStake, uint128 verifierStake) internal pure returns (uint256) {
        uint256 bond = down(price + solverStake, UNSERVED_OF_LOSS);
        return bond < verifierStake ? bond : verifierStake;
    }

    /// @notice What each of those that have said so gets of `left` of the solver's stake.
    function sayerShare(uint256 bond, uint256 left) internal pure returns (uint256) {
        uint256 share = down(bond, SAYER_OF_BOND);
        return share < left / 2 ? share : left / 2;
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
