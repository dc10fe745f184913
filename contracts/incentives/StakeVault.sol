// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC2771Context} from "@openzeppelin/contracts/metatx/ERC2771Context.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {LowLevelCall} from "@openzeppelin/contracts/utils/LowLevelCall.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IStakeVault} from "./IStakeVault.sol";
import {RelayedCaller} from "./RelayedCaller.sol";

/// @title StakeVault
/// @notice Holds all value of a deployment, in one asset (docs/spec/incentives.md, "The vault").
/// @dev Only the verbs that bring or take the asset call other code, and they are guarded. Verbs of desks move
/// integers: they are open while a withdrawal calls its receiver, and everything has been written by then.
contract StakeVault is IStakeVault, RelayedCaller, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    struct Exit {
        uint256 amount;
        uint64 until;
    }

    /// @notice Bounds of `exitDelay`: an air gap alone takes a day.
    uint64 public constant SHORTEST_EXIT = 1 days;
    /// @notice Nobody waits longer.
    uint64 public constant LONGEST_EXIT = 365 days;

    /// @inheritdoc IStakeVault
    address public immutable asset;
    /// @inheritdoc IStakeVault
    uint64 public immutable exitDelay;
    /// @inheritdoc IStakeVault
    address public immutable deployer;

    /// @inheritdoc IStakeVault
    bool public wired;
    /// @inheritdoc IStakeVault
    uint256 public credited;
    /// @inheritdoc IStakeVault
    mapping(address account => bool) public isDesk;
    /// @inheritdoc IStakeVault
    mapping(address account => uint256) public free;
    /// @inheritdoc IStakeVault
    mapping(address desk => mapping(bytes32 key => mapping(address account => uint256))) public locked;
    /// @inheritdoc IStakeVault
    mapping(address desk => mapping(bytes32 key => mapping(address account => Exit))) public leaving;
    /// @inheritdoc IStakeVault
    mapping(address desk => mapping(bytes32 key => uint256)) public pot;

    modifier onlyDesk() {
        if (!isDesk[msg.sender]) revert NotADesk(msg.sender);
        _;
    }

    /// @param asset_ The token, or zero for the native currency.
    /// @param exitDelay_ Seconds that leaving takes: more than the longest window, the longest dispute and a day
    /// together.
    /// @param forwarder The trusted forwarder, or zero if nothing is relayed.
    /// @param deployer_ Who names the desks: whoever creates contracts at agreed addresses is a factory.
    constructor(address asset_, uint64 exitDelay_, address forwarder, address deployer_) RelayedCaller(forwarder) {
        if (asset_ != address(0) && asset_.code.length == 0) revert NotAToken(asset_);
        // Nobody could name the desks.
        if (deployer_ == address(0)) revert Zero();
        if (exitDelay_ < SHORTEST_EXIT || exitDelay_ > LONGEST_EXIT) revert BadExitDelay(exitDelay_);
        asset = asset_;
        exitDelay = exitDelay_;
        deployer = deployer_;
    }

    /// @inheritdoc IStakeVault
    function wire(address[] calldata desks) external {
        if (msg.sender != deployer || wired) revert NotAllowed(msg.sender);
        if (desks.length == 0) revert Zero();
        wired = true;
        for (uint256 i = 0; i < desks.length; ++i) {
            // A forwarder as a desk would let everybody act as that desk.
            if (desks[i].code.length == 0 || isTrustedForwarder(desks[i])) revert NotADesk(desks[i]);
            isDesk[desks[i]] = true;
        }
        emit Wired(desks);
    }

    /// @inheritdoc IStakeVault
    function deposit(address account, uint256 amount) external payable nonReentrant {
        _deposit(account, amount);
    }

    /// @inheritdoc IStakeVault
    // Slither looks at the permit's call alone: the guard is around both.
    // slither-disable-next-line reentrancy-benign
    function depositWithPermit(address account, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
        nonReentrant
    {
        if (asset == address(0)) revert WrongTransfer(amount, 0);
        // Anybody can use a permit that is waiting in the mempool. Then it fails here, and what it has approved is
        // there.
        try IERC20Permit(asset).permit(_party(), address(this), amount, deadline, v, r, s) {} catch {}
        _deposit(account, amount);
    }

    /// @inheritdoc IStakeVault
    function withdraw(address to, uint256 amount) external nonReentrant {
        if (to == address(0) || amount == 0) revert Zero();
        address account = _party();
        free[account] = _less(account, free[account], amount);
        emit Withdrawn(account, to, amount);
        if (asset == address(0)) {
            if (!LowLevelCall.callNoReturn(to, amount, "")) revert PaymentRefused(to);
        } else {
            uint256 held = _holdings();
            credited -= amount;
            IERC20(asset).safeTransfer(to, amount);
            uint256 left = IERC20(asset).balanceOf(address(this));
            if (left + amount != held) revert WrongTransfer(amount, left < held ? held - left : 0);
        }
    }

    /// @inheritdoc IStakeVault
    function finishExit(address desk, bytes32 key, address account) external {
        Exit storage exit = leaving[desk][key][account];
        if (exit.amount == 0 || block.timestamp < exit.until) revert NotYet(exit.until);
        _finish(exit, desk, key, account);
    }

    /// @inheritdoc IStakeVault
    function lock(bytes32 key, address account, uint256 amount) external onlyDesk {
        if (amount == 0) return;
        free[account] = _less(account, free[account], amount);
        locked[msg.sender][key][account] += amount;
        emit Locked(msg.sender, key, account, amount);
    }

    /// @inheritdoc IStakeVault
    function unlock(bytes32 key, address account, uint256 amount) external onlyDesk {
        if (amount == 0) return;
        locked[msg.sender][key][account] = _less(account, locked[msg.sender][key][account], amount);
        free[account] += amount;
        emit Unlocked(msg.sender, key, account, amount);
    }

    /// @inheritdoc IStakeVault
    function startExit(bytes32 key, address account, uint256 amount) external onlyDesk {
        if (amount == 0) return;
        Exit storage exit = leaving[msg.sender][key][account];
        if (exit.amount != 0 && block.timestamp >= exit.until) _finish(exit, msg.sender, key, account);
        locked[msg.sender][key][account] = _less(account, locked[msg.sender][key][account], amount);
        exit.amount += amount;
        exit.until = uint64(block.timestamp) + exitDelay;
        emit Leaving(msg.sender, key, account, amount, exit.until);
    }

    /// @inheritdoc IStakeVault
    function forfeit(bytes32 key, address account, uint256 amount) external onlyDesk {
        if (amount == 0) return;
        uint256 held = locked[msg.sender][key][account];
        if (amount <= held) {
            locked[msg.sender][key][account] = held - amount;
        } else {
            Exit storage exit = leaving[msg.sender][key][account];
            // What has left in time is free, whether or not somebody has called `finishExit`.
            uint256 late = block.timestamp < exit.until ? exit.amount : 0;
            if (amount - held > late) revert Short(account, held + late, amount);
            delete locked[msg.sender][key][account];
            exit.amount = late - (amount - held);
            if (exit.amount == 0) delete leaving[msg.sender][key][account];
        }
        pot[msg.sender][key] += amount;
        emit Forfeited(msg.sender, key, account, amount);
    }

    /// @inheritdoc IStakeVault
    function pay(bytes32 key, address account, uint256 amount) external onlyDesk {
        if (amount == 0) return;
        if (account == address(0)) revert Zero();
        pot[msg.sender][key] = _less(msg.sender, pot[msg.sender][key], amount);
        free[account] += amount;
        emit Paid(msg.sender, key, account, amount);
    }

    /// @inheritdoc IStakeVault
    function move(bytes32 key, address toDesk, bytes32 toKey, uint256 amount) external onlyDesk {
        if (!isDesk[toDesk]) revert NotADesk(toDesk);
        if (amount == 0) return;
        pot[msg.sender][key] = _less(msg.sender, pot[msg.sender][key], amount);
        pot[toDesk][toKey] += amount;
        emit Moved(msg.sender, key, toDesk, toKey, amount);
    }

    /// @inheritdoc IStakeVault
    function trustedForwarder() public view override(ERC2771Context, IStakeVault) returns (address) {
        return super.trustedForwarder();
    }

    /// @dev Credits what has arrived.
    function _deposit(address account, uint256 amount) private {
        if (!wired) revert NotWired();
        if (account == address(0) || amount == 0) revert Zero();
        address from = _party();
        uint256 arrived = msg.value;
        if (asset != address(0)) {
            if (msg.value != 0) revert WrongTransfer(0, msg.value);
            uint256 held = _holdings();
            credited += amount;
            IERC20(asset).safeTransferFrom(from, address(this), amount);
            arrived = IERC20(asset).balanceOf(address(this)) - held;
        }
        if (arrived != amount) revert WrongTransfer(amount, arrived);
        free[account] += amount;
        emit Deposited(from, account, amount);
    }

    /// @dev A token that takes from its holders (a negative rebase) would let the first that leaves go with the money
    /// of the others.
    function _holdings() private view returns (uint256 held) {
        held = IERC20(asset).balanceOf(address(this));
        if (held < credited) revert AssetShort(held, credited);
    }

    /// @dev All that is leaving under a key is free.
    function _finish(Exit storage exit, address desk, bytes32 key, address account) private {
        uint256 amount = exit.amount;
        (exit.amount, exit.until) = (0, 0);
        free[account] += amount;
        emit Left(desk, key, account, amount);
    }

    /// @dev A balance of `account` without `amount`.
    function _less(address account, uint256 balance, uint256 amount) private pure returns (uint256) {
        if (amount > balance) revert Short(account, balance, amount);
        return balance - amount;
    }
}
