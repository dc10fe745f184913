// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IJackpot} from "../../../contracts/incentives/IJackpot.sol";
import {ISortition} from "../../../contracts/incentives/ISortition.sol";
import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {Vm} from "../Base.sol";

/// @notice A bot that lost its disk: rebuilds tickets, reserves, commitments and the fund from nothing but events.
contract LotteryReplay {
    mapping(address account => uint32) public tickets;
    uint256 public total;
    mapping(bytes32 taskId => uint256) public left;
    mapping(bytes32 taskId => uint32) public catches;
    uint256 public reserved;
    uint256 public fund;
    mapping(
        bytes32 taskId => mapping(uint32 seating => mapping(address account => mapping(uint32 ticket => bytes32)))
    ) public commitments;
    address private immutable jackpot;

    constructor(address jackpot_) {
        jackpot = jackpot_;
    }

    function replay(Vm.Log[] calldata logs) external {
        for (uint256 i = 0; i < logs.length; ++i) {
            _fund(logs[i]);
            _tickets(logs[i]);
            _jackpot(logs[i]);
        }
    }

    function _fund(Vm.Log calldata log) private {
        bytes32 topic = log.topics[0];
        if (topic == IStakeVault.Moved.selector) {
            (, uint256 amount) = abi.decode(log.data, (bytes32, uint256));
            if (_address(log.topics[3]) == jackpot) fund += amount;
        } else if (log.topics.length > 1 && _address(log.topics[1]) == jackpot) {
            if (topic == IStakeVault.Forfeited.selector) fund += abi.decode(log.data, (uint256));
            else if (topic == IStakeVault.Paid.selector) fund -= abi.decode(log.data, (uint256));
        }
    }

    function _tickets(Vm.Log calldata log) private {
        bytes32 topic = log.topics[0];
        if (topic != ISortition.Enrolled.selector && topic != ISortition.Resigned.selector) return;
        address who = _address(log.topics[1]);
        (, uint32 mine) = abi.decode(log.data, (uint256, uint32));
        total = total + mine - tickets[who];
        tickets[who] = mine;
    }

    function _jackpot(Vm.Log calldata log) private {
        bytes32 topic = log.topics[0];
        if (topic == IJackpot.Reserved.selector) {
            uint256 amount = abi.decode(log.data, (uint256));
            (left[log.topics[1]], reserved) = (amount, reserved + amount);
        } else if (topic == IJackpot.Released.selector) {
            (left[log.topics[1]], reserved) = (0, reserved - abi.decode(log.data, (uint256)));
        } else if (topic == IJackpot.Watched.selector) {
            (uint32 ticket, bytes32 commitment) = abi.decode(log.data, (uint32, bytes32));
            _commit(log, ticket, commitment);
        } else if (topic == IJackpot.Caught.selector) {
            (uint32 ticket, uint256 amount) = abi.decode(log.data, (uint32, uint256));
            _commit(log, ticket, 0);
            (left[log.topics[1]], reserved) = (left[log.topics[1]] - amount, reserved - amount);
            ++catches[log.topics[1]];
        }
    }

    function _commit(Vm.Log calldata log, uint32 ticket, bytes32 commitment) private {
        commitments[log.topics[1]][uint32(uint256(log.topics[2]))][_address(log.topics[3])][ticket] = commitment;
    }

    function _address(bytes32 topic) private pure returns (address) {
        return address(uint160(uint256(topic)));
    }
}
