// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IStakeVault
/// @notice The only contract of a deployment that holds value, in one asset (docs/spec/incentives.md, "The vault").
/// @dev Assumptions: the desks are code of this deployment, named once. A token that takes back what arrived stops
/// deposits and withdrawals (`AssetShort`): its loss falls on nobody alone. Keys are the desk's own: no desk reaches
/// the locks and pots of another. A desk that moves nothing, an amount of zero, has no effect.
interface IStakeVault {
    /// @notice The desks are named, for ever.
    event Wired(address[] desks);
    /// @notice `from` has brought `amount` for `account`.
    event Deposited(address indexed from, address indexed account, uint256 amount);
    /// @notice `account` has taken `amount` out, to `to`.
    event Withdrawn(address indexed account, address indexed to, uint256 amount);
    /// @notice Free money of `account` answers for a duty now.
    event Locked(address indexed desk, bytes32 indexed key, address indexed account, uint256 amount);
    /// @notice It doesn't any more.
    event Unlocked(address indexed desk, bytes32 indexed key, address indexed account, uint256 amount);
    /// @notice Locked money is on its way out; all of what is leaving under this key is free from `until` on.
    event Leaving(address indexed desk, bytes32 indexed key, address indexed account, uint256 amount, uint64 until);
    /// @notice What was leaving is free.
    event Left(address indexed desk, bytes32 indexed key, address indexed account, uint256 amount);
    /// @notice Locked or leaving money of `account` went to the desk's pot `key`.
    event Forfeited(address indexed desk, bytes32 indexed key, address indexed account, uint256 amount);
    /// @notice The desk's pot `key` has paid `account`.
    event Paid(address indexed desk, bytes32 indexed key, address indexed account, uint256 amount);
    /// @notice Money went from a pot to another desk's.
    event Moved(address indexed desk, bytes32 indexed key, address indexed toDesk, bytes32 toKey, uint256 amount);

    /// @notice Only desks may do that.
    error NotADesk(address caller);
    /// @notice The desks have been named, or the caller isn't the deployer.
    error NotAllowed(address caller);
    /// @notice No desk is named yet.
    error NotWired();
    /// @notice `account` has only `available` where `wanted` is needed: free money for a lock or a withdrawal, else
    /// locked, leaving or in the pot.
    error Short(address account, uint256 available, uint256 wanted);
    /// @notice The token has taken from the vault: nobody comes or leaves until somebody has sent it what is missing.
    error AssetShort(uint256 held, uint256 credited);
    /// @notice Other than `amount` came in or went out, or value came where the asset is a token.
    error WrongTransfer(uint256 amount, uint256 moved);
    /// @notice What is leaving is free from `until` on, not now; zero means that nothing is leaving.
    error NotYet(uint64 until);
    /// @notice Zero is no amount that a party brings or takes, and no account; and no desks are no deployment.
    error Zero();
    /// @notice The asset has no code.
    error NotAToken(address asset);
    /// @notice Seconds between `SHORTEST_EXIT` and `LONGEST_EXIT`.
    error BadExitDelay(uint64 delay);
    /// @notice The receiver refused the payment.
    error PaymentRefused(address to);

    /// @notice The token, or zero for the native currency.
    function asset() external view returns (address);

    /// @notice Seconds that leaving takes.
    function exitDelay() external view returns (uint64);

    /// @notice Money that answers for nothing.
    function free(address account) external view returns (uint256);

    /// @notice Money that answers for a duty.
    function locked(address desk, bytes32 key, address account) external view returns (uint256);

    /// @notice Money on its way out, forfeitable before `until`, free from then on.
    function leaving(address desk, bytes32 key, address account) external view returns (uint256 amount, uint64 until);

    /// @notice Money of a desk that belongs to no party yet.
    function pot(address desk, bytes32 key) external view returns (uint256);

    /// @notice Who names the desks to the vault and to each other, once, and has no other right.
    function deployer() external view returns (address);

    /// @notice All that has been credited to accounts and pots and not withdrawn, where the asset is a token.
    function credited() external view returns (uint256);

    /// @notice Whether the desks have been named.
    function wired() external view returns (bool);

    /// @notice Whether `account` is a desk.
    function isDesk(address account) external view returns (bool);

    /// @notice Whose calls are those of the party that has signed them (ERC-2771); zero if nothing is relayed.
    function trustedForwarder() external view returns (address);

    /// @notice Deployer, once: names the desks. Contracts only, and not the forwarder.
    function wire(address[] calldata desks) external;

    /// @notice Brings `amount` for `account`: the value of the call, or tokens that the caller has approved.
    function deposit(address account, uint256 amount) external payable;

    /// @notice The same with a token's permit (ERC-2612) by the caller. A permit that fails doesn't matter if the
    /// approval is there.
    function depositWithPermit(address account, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external;

    /// @notice Takes free money of the caller out.
    function withdraw(address to, uint256 amount) external;

    /// @notice Makes free what has been leaving long enough; for anybody.
    function finishExit(address desk, bytes32 key, address account) external;

    /// @notice Desk: free to locked. The desk has to have been asked by `account`.
    function lock(bytes32 key, address account, uint256 amount) external;

    /// @notice Desk: locked to free.
    function unlock(bytes32 key, address account, uint256 amount) external;

    /// @notice Desk: locked to leaving. What is already leaving under this key waits anew, unless its time is over:
    /// then it is free.
    function startExit(bytes32 key, address account, uint256 amount) external;

    /// @notice Desk: locked, and if that isn't enough what is leaving before its time is over, to the desk's pot `key`.
    function forfeit(bytes32 key, address account, uint256 amount) external;

    /// @notice Desk: pot to free.
    function pay(bytes32 key, address account, uint256 amount) external;

    /// @notice Desk: pot to a pot of another desk.
    function move(bytes32 key, address toDesk, bytes32 toKey, uint256 amount) external;
}
