// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Desk} from "./Desk.sol";
import {ForcedErrors} from "./ForcedErrors.sol";
import {IJackpot} from "./IJackpot.sol";
import {ISeatings} from "./ISeatings.sol";
import {ISortition} from "./ISortition.sol";
import {IStakeVault} from "./IStakeVault.sol";

/// @title Jackpot
/// @notice One fund for the catches of all tasks.
/// @dev Solvent: `vault.pot(this, FUND) >= reserved`, and `reserved` is the sum over all tasks of what is reserved and
/// not paid. Nobody names a receiver: a catch is paid to the account whose ticket was drawn and that committed itself.
contract Jackpot is IJackpot, Desk {
    struct Reserve {
        uint128 amount;
        uint32 catches;
    }

    /// @notice The vault's key of the fund.
    bytes32 public constant FUND = "fund";

    /// @notice Says which tickets are drawn.
    ISortition public immutable sortition;
    /// @inheritdoc IJackpot
    uint32 public immutable shares;
    /// @inheritdoc IJackpot
    uint32 public immutable rate;
    /// @notice Five blocks of 12 seconds: a commitment sent in the window's first is heard.
    uint32 public constant MIN_COMMIT_WINDOW = 1 minutes;
    /// @notice A watcher's answer waits no longer for the window.
    uint32 public constant MAX_COMMIT_WINDOW = 1 days;
    /// @inheritdoc IJackpot
    uint32 public immutable commitWindow;
    /// @inheritdoc IJackpot
    uint32 public immutable catchWindow;

    /// @inheritdoc IJackpot
    ISeatings public seatings;
    /// @inheritdoc IJackpot
    mapping(address account => bool) public mayReserve;
    /// @inheritdoc IJackpot
    mapping(bytes32 taskId => Reserve) public reserves;
    /// @inheritdoc IJackpot
    uint256 public reserved;
    /// @inheritdoc IJackpot
    mapping(
        bytes32 taskId => mapping(uint32 seating => mapping(address account => mapping(uint32 ticket => bytes32)))
    ) public commitments;

    modifier onlyReserver() {
        if (!mayReserve[msg.sender]) revert NotAllowed(msg.sender);
        _;
    }

    /// @param sortition_ Says which tickets are drawn, and how many on average.
    /// @param shares_ Catches of a task that are paid, at most.
    /// @param rate_ How often verdicts are wrong on purpose, times 2^32.
    /// @param commitWindow_ Last seconds of the watch in which commitments are taken: less than the replay of a segment
    /// takes.
    /// @param catchWindow_ Seconds to claim catches, from when the task is closed.
    constructor(
        IStakeVault vault_,
        ISortition sortition_,
        uint32 shares_,
        uint32 rate_,
        uint32 commitWindow_,
        uint32 catchWindow_
    ) Desk(vault_) {
        ForcedErrors.checkRate(rate_);
        bool bounded = MIN_COMMIT_WINDOW <= commitWindow_ && commitWindow_ <= MAX_COMMIT_WINDOW;
        if (shares_ < 2 * uint256(sortition_.watchers()) || !bounded || catchWindow_ == 0) revert BadDeployment();
        sortition = sortition_;
        shares = shares_;
        rate = rate_;
        commitWindow = commitWindow_;
        catchWindow = catchWindow_;
    }

    /// @notice Deployer, once: names the desk that knows the seatings, and those that may reserve and release.
    function wire(ISeatings seatings_, address[] calldata desks) external wiring {
        seatings = seatings_;
        for (uint256 i = 0; i < desks.length; ++i) {
            mayReserve[desks[i]] = true;
        }
        emit Wired(address(seatings_), desks);
    }

    /// @inheritdoc IJackpot
    function donate(uint256 amount) external {
        address account = _party();
        emit Donated(account, amount);
        vault.lock(FUND, account, amount);
        vault.forfeit(FUND, account, amount);
    }

    /// @inheritdoc IJackpot
    function reserve(bytes32 taskId, uint128 amount) external onlyReserver {
        Reserve storage r = reserves[taskId];
        if (r.amount != 0 || r.catches != 0) revert AlreadyReserved(taskId);
        if (amount < shares) revert TooSmall(amount);
        uint256 free = available();
        if (amount > free) revert FundShort(free, amount);
        r.amount = amount;
        reserved += amount;
        emit Reserved(taskId, amount);
    }

    /// @inheritdoc IJackpot
    function release(bytes32 taskId) external onlyReserver {
        if (reserves[taskId].amount != 0) _release(taskId);
    }

    /// @inheritdoc IJackpot
    function watch(bytes32 taskId, uint32 ticket, bytes32 commitment) external {
        address account = _party();
        (uint32 seating, uint64 since, bytes32 seed, uint64 watchUntil) = seatings.seating(taskId);
        bool open = block.timestamp <= watchUntil && block.timestamp + commitWindow > watchUntil;
        if (seed == 0 || !open) revert NotWatched(taskId);
        if (seatings.isParty(taskId, account)) revert IsParty(taskId, account);
        if (!sortition.isWatcher(account, ticket, taskId, seating, since, seed)) revert NotDrawn(account, ticket);
        commitments[taskId][seating][account][ticket] = commitment;
        emit Watched(taskId, seating, account, ticket, commitment);
    }

    /// @inheritdoc IJackpot
    function claim(
        bytes32 taskId,
        uint32 seating,
        address account,
        uint32 ticket,
        uint32 index,
        bytes32 salt,
        bytes calldata evidence
    ) external {
        Reserve storage r = reserves[taskId];
        if (r.amount == 0) revert NotReserved(taskId);
        uint64 until = _until(taskId);
        if (block.timestamp > until) revert TooLate(until);
        if (r.catches == shares) revert AllPaid(taskId);
        bytes32 entry = seatings.refuted(taskId, seating, index, evidence);
        bytes32 found = keccak256(abi.encode(account, taskId, seating, index, entry, salt));
        if (commitments[taskId][seating][account][ticket] != found) revert NotCaught(account, ticket);
        delete commitments[taskId][seating][account][ticket];
        uint256 paid = share(r.amount);
        ++r.catches;
        reserved -= paid;
        emit Caught(taskId, seating, account, ticket, paid);
        vault.pay(FUND, account, paid);
    }

    /// @inheritdoc IJackpot
    function sweep(bytes32 taskId) external {
        if (reserves[taskId].amount == 0) revert NotReserved(taskId);
        uint64 until = _until(taskId);
        if (block.timestamp <= until) revert TooEarly(until);
        _release(taskId);
    }

    /// @inheritdoc IJackpot
    function available() public view returns (uint256) {
        return vault.pot(address(this), FUND) - reserved;
    }

    /// @inheritdoc IJackpot
    function share(uint128 amount) public view returns (uint256) {
        return amount / shares;
    }

    /// @inheritdoc IJackpot
    function tax(uint128 jackpot) external view returns (uint256) {
        uint256 cost = uint256(jackpot) * sortition.watchers() * rate;
        return Math.ceilDiv(cost * 5, shares * ForcedErrors.ONE * 4);
    }

    /// @dev Last second to claim catches of a task that is closed.
    function _until(bytes32 taskId) private view returns (uint64) {
        uint64 closed = seatings.closedAt(taskId);
        if (closed == 0) revert NotClosed(taskId);
        return closed + catchWindow;
    }

    function _release(bytes32 taskId) private {
        Reserve storage r = reserves[taskId];
        uint256 left = r.amount - share(r.amount) * r.catches;
        r.amount = 0;
        reserved -= left;
        emit Released(taskId, left);
    }
}
