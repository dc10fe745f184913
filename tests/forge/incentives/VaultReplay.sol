// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {Vm} from "../Base.sol";

/// @notice An indexer: rebuilds every balance from nothing but the vault's events.
contract VaultReplay {
    struct Exit {
        uint256 amount;
        uint64 until;
    }

    bool public wired;
    mapping(address account => bool) public isDesk;
    mapping(address account => uint256) public free;
    mapping(address desk => mapping(bytes32 key => mapping(address account => uint256))) public locked;
    mapping(address desk => mapping(bytes32 key => mapping(address account => Exit))) public leaving;
    mapping(address desk => mapping(bytes32 key => uint256)) public pot;

    function replay(Vm.Log calldata log) external {
        bytes32 topic = log.topics[0];
        if (topic == IStakeVault.Wired.selector) {
            address[] memory desks = abi.decode(log.data, (address[]));
            for (uint256 i = 0; i < desks.length; ++i) {
                isDesk[desks[i]] = true;
            }
            wired = true;
        } else if (topic == IStakeVault.Deposited.selector) {
            free[_address(log.topics[2])] += abi.decode(log.data, (uint256));
        } else if (topic == IStakeVault.Withdrawn.selector) {
            free[_address(log.topics[1])] -= abi.decode(log.data, (uint256));
        } else if (topic == IStakeVault.Moved.selector) {
            (bytes32 toKey, uint256 amount) = abi.decode(log.data, (bytes32, uint256));
            pot[_address(log.topics[1])][log.topics[2]] -= amount;
            pot[_address(log.topics[3])][toKey] += amount;
        } else if (topic == IStakeVault.Leaving.selector) {
            (uint256 amount, uint64 until) = abi.decode(log.data, (uint256, uint64));
            _leave(_address(log.topics[1]), log.topics[2], _address(log.topics[3]), amount, until);
        } else {
            uint256 amount = abi.decode(log.data, (uint256));
            _change(topic, _address(log.topics[1]), log.topics[2], _address(log.topics[3]), amount);
        }
    }

    function _leave(address desk, bytes32 key, address account, uint256 amount, uint64 until) private {
        locked[desk][key][account] -= amount;
        leaving[desk][key][account] = Exit(leaving[desk][key][account].amount + amount, until);
    }

    function _change(bytes32 topic, address desk, bytes32 key, address account, uint256 amount) private {
        if (topic == IStakeVault.Locked.selector) {
            free[account] -= amount;
            locked[desk][key][account] += amount;
        } else if (topic == IStakeVault.Unlocked.selector) {
            locked[desk][key][account] -= amount;
            free[account] += amount;
        } else if (topic == IStakeVault.Left.selector) {
            require(leaving[desk][key][account].amount == amount, "left");
            delete leaving[desk][key][account];
            free[account] += amount;
        } else if (topic == IStakeVault.Forfeited.selector) {
            uint256 held = locked[desk][key][account];
            uint256 rest = amount > held ? amount - held : 0;
            locked[desk][key][account] = held - (amount - rest);
            leaving[desk][key][account].amount -= rest;
            if (leaving[desk][key][account].amount == 0) delete leaving[desk][key][account];
            pot[desk][key] += amount;
        } else {
            require(topic == IStakeVault.Paid.selector, "an event that nobody knows");
            pot[desk][key] -= amount;
            free[account] += amount;
        }
    }

    function _address(bytes32 topic) private pure returns (address) {
        return address(uint160(uint256(topic)));
    }
}
