// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Checkpoints} from "@openzeppelin/contracts/utils/structs/Checkpoints.sol";
import {Desk} from "./Desk.sol";
import {ISortition} from "./ISortition.sol";
import {IStakeVault} from "./IStakeVault.sol";
import {Ranks} from "./Ranks.sol";

/// @title Sortition
/// @notice Locks the bonds of enrolled verifiers, remembers their tickets over time, draws with seeds that others
/// bring.
/// @dev `locked == tickets * unit` at all times, for every account.
contract Sortition is ISortition, Desk {
    using Checkpoints for Checkpoints.Trace208;

    /// @notice The vault's key of all bonds.
    bytes32 public constant BOND = "bond";

    /// @inheritdoc ISortition
    uint256 public immutable unit;
    /// @inheritdoc ISortition
    uint32 public immutable watchers;

    mapping(address account => Checkpoints.Trace208) private _weights;
    Checkpoints.Trace208 private _total;

    /// @param unit_ What a ticket locks.
    /// @param watchers_ Tickets that watch a seating, on average.
    constructor(IStakeVault vault_, uint128 unit_, uint32 watchers_) Desk(vault_) {
        if (unit_ == 0 || watchers_ == 0) revert BadDeployment();
        unit = unit_;
        watchers = watchers_;
    }

    /// @inheritdoc ISortition
    function enrol(uint32 count) external {
        address account = _party();
        uint256 mine = uint256(ticketsNow(account)) + count;
        if (count == 0 || mine > type(uint32).max) revert BadCount(account, count);
        _weigh(account, uint32(mine), totalNow() + count);
        emit Enrolled(account, count, uint32(mine));
        vault.lock(BOND, account, count * unit);
    }

    /// @inheritdoc ISortition
    function resign(uint32 count) external {
        address account = _party();
        uint32 mine = ticketsNow(account);
        if (count == 0) revert BadCount(account, count);
        if (count > mine) revert TooFewTickets(account, mine, count);
        _weigh(account, mine - count, totalNow() - count);
        emit Resigned(account, count, mine - count);
        vault.startExit(BOND, account, count * unit);
    }

    /// @inheritdoc ISortition
    function seatRank(address account, uint32 ticket, bytes32 taskId, uint32 seating, uint64 t, bytes32 seed)
        external
        view
        returns (uint256)
    {
        uint32 held = tickets(account, t);
        if (ticket >= held) revert TooFewTickets(account, held, uint256(ticket) + 1);
        return Ranks.rank(seed, Ranks.purpose("seat", taskId, seating), account, ticket);
    }

    /// @inheritdoc ISortition
    function isWatcher(address account, uint32 ticket, bytes32 taskId, uint32 seating, uint64 t, bytes32 seed)
        external
        view
        returns (bool)
    {
        if (ticket >= tickets(account, t)) return false;
        uint256 rank = Ranks.rank(seed, Ranks.purpose("watch", taskId, seating), account, ticket);
        return Ranks.isBelow(rank, total(t), watchers);
    }

    /// @inheritdoc ISortition
    function tickets(address account, uint64 t) public view returns (uint32) {
        return uint32(Math.min(_at(_weights[account], t), ticketsNow(account)));
    }

    /// @inheritdoc ISortition
    function total(uint64 t) public view returns (uint256) {
        return _at(_total, t);
    }

    /// @inheritdoc ISortition
    function ticketsNow(address account) public view returns (uint32) {
        return uint32(_weights[account].latest());
    }

    /// @inheritdoc ISortition
    function totalNow() public view returns (uint256) {
        return _total.latest();
    }

    function _weigh(address account, uint32 mine, uint256 all) private {
        // Keys are seconds; the total would need 2^176 accounts to reach 2^208.
        uint48 now_ = uint48(block.timestamp);
        // `push` tells the values before and after, which are known here.
        // slither-disable-start unused-return
        _weights[account].push(now_, mine);
        _total.push(now_, uint208(all));
        // slither-disable-end unused-return
    }

    /// @dev At the end of the second before `t`, which nothing can change any more.
    function _at(Checkpoints.Trace208 storage trace, uint64 t) private view returns (uint256) {
        if (t == 0 || t > block.timestamp) revert NoSuchTime(t);
        return trace.upperLookupRecent(uint48(t - 1));
    }
}
