// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Piece} from "../commitments/StateLeaf.sol";

/// @notice One leaf of one state of a solver's log, that somebody wants to see. The desk keeps its hash only.
struct DataDemand {
    bytes32 taskId;
    uint64 began; // of the solver whose log it is
    uint64 entry; // of the log: a state root
    uint32 position; // of the slot, counted on from 0 past the width of the tree
    uint32 leaf; // of its tensor, counted in the same way
    address demander;
    uint64 deadline; // the last second for the answer
    uint256 bond; // what the answer earns
}

/// @notice What a desk remembers of the demands for one log.
struct Waiting {
    uint64 began; // of the solver whose log it is
    uint32 open; // demands that are neither answered nor expired
    uint32 extended; // the seating whose verifier has got its time for answers
}

/// @title IDataDemands
/// @notice Whoever can't get what a solver has committed to asks for it here, and the solver answers for it with its
/// stake (docs/spec/market.md, "Data on demand").
///
/// Assumptions and known limits:
/// - The solver watches the chain from its commitment to the settlement. Censoring its answers for a whole window costs
///   it the stake.
/// - An answer proves one leaf. A solver that answers here and serves nobody elsewhere makes every leaf cost its bond.
interface IDataDemands {
    /// @notice Somebody wants to see a leaf; `key` is the hash of the demand.
    event Demanded(bytes32 indexed taskId, bytes32 indexed key, DataDemand demand);
    /// @notice The leaf was shown; `root` is the state root, `logPath` its inclusion path in the log.
    event Answered(
        bytes32 indexed taskId,
        bytes32 indexed key,
        address indexed answerer,
        bytes32 root,
        bytes leaf,
        bytes32[] logPath
    );
    /// @notice The bond went back: the leaf was `withheld`, or the demand is moot.
    event Expired(bytes32 indexed taskId, bytes32 indexed key, bool withheld);

    /// @notice The window for answers lasts from a minute to 14 days.
    error InvalidWindow(uint32 window);
    /// @notice The log has `size` entries.
    error NoSuchEntry(uint64 entry, uint64 size);
    /// @notice The base fee has risen: the bond is `bond` now.
    error BondTooHigh(uint256 bond);
    /// @notice The same demand was made in this second.
    error AlreadyDemanded(bytes32 key);
    /// @notice There is no such open demand: it was answered, has expired, or was never made.
    error NoSuchDemand(bytes32 key);
    /// @notice The log that the demand is about decides nothing any more: get the bond back by `expire`.
    error Moot(bytes32 key);
    /// @notice Until `until` only the solver may answer.
    error SolverFirst(uint64 until);
    /// @notice The state root isn't this entry of the log.
    error NotInLog(bytes32 root);
    /// @notice The verdict rejects and stands: settle the task, that takes the same stake.
    error SettleFirst(bytes32 taskId);

    /// @notice Asks for a leaf, while a proof is committed and not settled, and before the deadline of the task. Locks
    /// `bondOf()`. The first demand of a seated verifier moves its deadline by one window, once in a seating.
    /// @param mostBond What the caller is ready to lock.
    function demand(bytes32 taskId, uint64 entry, uint32 position, uint32 leaf, uint256 mostBond)
        external
        returns (bytes32 key);

    /// @notice Shows the leaf, by the solver in the first half of the window, by anybody in the second. The bond is the
    /// caller's.
    function answer(DataDemand calldata d, Piece calldata piece) external;

    /// @notice Anybody: the bond of a demand that wasn't answered goes back. If its log is still the task's, the data
    /// was withheld: the solver's stake is split and the task is auctioned anew. A verdict that is on its way is
    /// decided before that.
    function expire(DataDemand calldata d) external;

    /// @notice What a demand locks now.
    function bondOf() external view returns (uint256);

    /// @notice Seconds for an answer.
    function window() external view returns (uint32);

    /// @notice Whether a demand waits for its answer.
    function isOpen(bytes32 key) external view returns (bool);

    /// @notice How many demands for the task's present log are open.
    function open(bytes32 taskId) external view returns (uint32);

    /// @notice What is remembered of the demands of a task, perhaps for the log of an earlier solver.
    function waiting(bytes32 taskId) external view returns (Waiting memory);
}
