// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Ledger} from "../../../contracts/market/Ledger.sol";
import {Dispute, Outcome, Status, Task, Terms} from "../../../contracts/market/TaskTypes.sol";
import {Vm} from "../Base.sol";

/// @notice A bot that lost its disk: rebuilds tasks, terms, disputes and credits from nothing but the market's events.
contract EventReplay {
    mapping(address account => uint256) public credits;
    address public game;
    address public profiles;
    mapping(bytes32 taskId => Task) private _tasks;
    mapping(bytes32 taskId => Terms) private _terms;
    mapping(uint256 number => Dispute) private _disputes;

    function task(bytes32 taskId) external view returns (Task memory) {
        return _tasks[taskId];
    }

    function terms(bytes32 taskId) external view returns (Terms memory) {
        return _terms[taskId];
    }

    function dispute(uint256 number) external view returns (Dispute memory) {
        return _disputes[number];
    }

    function replay(Vm.Log calldata log) external {
        bytes32 topic = log.topics[0];
        if (topic == ITaskMarket.GameSet.selector) {
            (game, profiles) = abi.decode(log.data, (address, address));
        } else if (topic == Ledger.Withdrawn.selector) {
            credits[_address(log.topics[1])] -= abi.decode(log.data, (uint256));
        } else if (topic == Ledger.Credited.selector) {
            credits[_address(log.topics[2])] += abi.decode(log.data, (uint256));
        } else if (log.topics.length > 1) {
            if (!_opening(log, _tasks[log.topics[1]])) _closing(log, _tasks[log.topics[1]]);
        }
    }

    /// @dev Up to the draw.
    function _opening(Vm.Log calldata log, Task storage t) private returns (bool known) {
        bytes32 topic = log.topics[0];
        if (topic == ITaskMarket.TaskSubmitted.selector) {
            uint256 fee;
            (, _terms[log.topics[1]], fee) = abi.decode(log.data, (uint256, Terms, uint256));
            (t.submitter, t.fee, t.status) = (_address(log.topics[2]), uint128(fee), Status.Open);
        } else if (topic == ITaskMarket.VerifierJoined.selector) {
            (t.verifier, t.deadline) = (_address(log.topics[2]), abi.decode(log.data, (uint64)));
        } else if (topic == ITaskMarket.VerifierLeft.selector) {
            t.verifier = address(0);
        } else if (topic == ITaskMarket.ProfileVoided.selector) {
            t.verifier = address(0);
        } else if (topic == ITaskMarket.TaskAccepted.selector) {
            (t.price, t.thresholds, t.deadline) = abi.decode(log.data, (uint128, uint64[3], uint64));
            (t.solver, t.status) = (_address(log.topics[2]), Status.Training);
        } else if (topic == ITaskMarket.ProgressPosted.selector) {
            (t.logSize, t.logRoot) = abi.decode(log.data, (uint64, bytes32));
        } else if (topic == ITaskMarket.ProofCommitted.selector) {
            (t.logSize, t.logRoot,, t.round) = abi.decode(log.data, (uint64, bytes32, bytes32, uint64));
            (t.status, t.deadline) = (Status.Committed, 0);
        } else {
            return false;
        }
        return true;
    }

    /// @dev From the draw on.
    function _closing(Vm.Log calldata log, Task storage t) private {
        bytes32 topic = log.topics[0];
        if (topic == ITaskMarket.SegmentsDrawn.selector) {
            (t.seed,, t.deadline) = abi.decode(log.data, (bytes32, uint32[], uint64));
            t.status = Status.Drawn;
        } else if (topic == ITaskMarket.VerdictPosted.selector) {
            (t.accepted, t.deadline) = abi.decode(log.data, (bool, uint64));
            (t.verdicts, t.status) = (uint32(uint256(log.topics[2])), Status.Verdict);
        } else if (topic == ITaskMarket.Challenged.selector) {
            (uint256 number,,,,) = abi.decode(log.data, (uint256, uint32, uint8, uint8, uint256));
            _disputes[number] =
                Dispute(log.topics[1], _address(log.topics[3]), uint32(uint256(log.topics[2])), t.challenges, false);
            ++t.challenges;
            ++t.open;
        } else if (topic == ITaskMarket.DisputeResolved.selector) {
            _disputes[uint256(log.topics[3])].released = true;
            if (abi.decode(log.data, (bool))) {
                --t.open;
            } else {
                (t.status, t.verifier, t.deadline, t.accepted) = (Status.Drawn, address(0), 0, false);
                (t.challenges, t.open) = (0, 0);
            }
        } else if (topic == ITaskMarket.DisputeMoot.selector) {
            _disputes[uint256(log.topics[3])].released = true;
        } else if (topic == ITaskMarket.VerifierDefaulted.selector) {
            (t.verifier, t.deadline) = (address(0), 0);
        } else if (topic == ITaskMarket.TaskClosed.selector) {
            (t.outcome, t.status, t.deadline) = (abi.decode(log.data, (Outcome)), Status.Closed, 0);
        }
    }

    function _address(bytes32 topic) private pure returns (address) {
        return address(uint160(uint256(topic)));
    }
}
