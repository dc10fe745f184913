// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title PullPayments
/// @notice Pull payments. What somebody has earned waits here until they fetch it, so nobody's payment depends on
/// another's code.
abstract contract PullPayments {
    /// @notice A task pays `amount` to `account`.
    event Credited(bytes32 indexed taskId, address indexed account, uint256 amount);
    /// @notice `account` has fetched `amount`.
    event Withdrawn(address indexed account, uint256 amount);

    /// @notice There is nothing to withdraw.
    error NothingToWithdraw();
    /// @notice The account refused the payment.
    error PaymentRefused();

    /// @notice What `account` can withdraw, in wei.
    mapping(address account => uint256) public credits;

    /// @notice Pays the caller everything it is owed.
    function withdraw() external {
        uint256 amount = credits[msg.sender];
        if (amount == 0) revert NothingToWithdraw();
        credits[msg.sender] = 0;
        emit Withdrawn(msg.sender, amount);
        (bool paid,) = msg.sender.call{value: amount}("");
        if (!paid) revert PaymentRefused();
    }

    function _credit(bytes32 taskId, address account, uint256 amount) internal {
        if (amount == 0) return;
        credits[account] += amount;
        emit Credited(taskId, account, amount);
    }
}
