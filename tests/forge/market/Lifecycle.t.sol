// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk} from "../../../contracts/incentives/Desk.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {Lifecycle} from "../../../contracts/market/Lifecycle.sol";
import {Status} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice In every status of a task, every desk tries every way: it goes the ways that `Lifecycle` has for it, and no
/// other. That the table is the one of the specification: tests/chain/test_lifecycle.py.
contract LifecycleTest is MarketBase {
    error Tried(bool worked, bytes answer);

    /// @dev Undone by its own revert.
    function attempt(address caller, Status from, Status to) external {
        vm.prank(caller);
        (bool worked, bytes memory answer) = address(registry).call(abi.encodeCall(registry.advance, (id, from, to, 0)));
        revert Tried(worked, answer);
    }

    function _try(address caller, Status from, Status to) private returns (bool worked, bytes memory answer) {
        try this.attempt(caller, from, to) {
            revert();
        } catch (bytes memory tried) {
            assembly ("memory-safe") {
                // Without its selector.
                mstore(add(tried, 4), sub(mload(tried), 4))
                tried := add(tried, 4)
            }
            return abi.decode(tried, (bool, bytes));
        }
    }

    function _try(address desk, uint256 mover, Status from, Status to) private {
        (bool worked, bytes memory answer) = _try(desk, from, to);
        vm.assertEq(worked, Lifecycle.movers(from, to) & mover != 0);
        bytes memory refused = abi.encodeWithSelector(ITaskRegistry.IllegalTransition.selector, from, to);
        if (!worked) vm.assertEq(answer, refused);
    }

    /// @dev The task is in `from`.
    function _tryAll(Status from) private {
        vm.assertTrue(registry.task(id).status == from);
        for (uint8 i = 0; i <= uint8(type(Status).max); i++) {
            Status to = Status(i);
            _try(address(seats), Lifecycle.SEATS, from, to);
            _try(address(proofs), Lifecycle.PROOFS, from, to);
            _try(address(profiles), Lifecycle.PROFILES, from, to);
            _try(address(verdicts), Lifecycle.VERDICTS, from, to);
            _try(address(demands), Lifecycle.DEMANDS, from, to);
            _try(address(settlement), Lifecycle.SETTLEMENT, from, to);
            _try(address(challenges), 0, from, to);
            _try(address(auction), 0, from, to);
            (bool worked, bytes memory answer) = _try(solver, from, to);
            vm.assertFalse(worked);
            vm.assertEq(answer, abi.encodeWithSelector(Desk.NotAllowed.selector, solver));
        }
    }

    function test_desks_go_the_ways_of_the_table_and_no_other() public {
        _tryAll(Status.None);
        _submit();
        _tryAll(Status.Profiling);
        _seat(verifier);
        _profile();
        _conclude();
        _tryAll(Status.Bidding);
        _award();
        _tryAll(Status.Training);
        _commit();
        _tryAll(Status.Committed);
        _seatVerifier(verifier, false);
        _tryAll(Status.Verifying);
        _verdict(verifier, true);
        _tryAll(Status.Watched);
        _openWatch();
        _disclose(verifier, true);
        _tryAll(Status.Contested);
        _pass(_terms().challengeWindow + 1);
        settlement.settle(id);
        _tryAll(Status.Closed);
    }

    function test_another_status_is_told() public {
        _submit();
        (bool worked, bytes memory answer) = _try(address(proofs), Status.Training, Status.Committed);
        vm.assertFalse(worked);
        vm.assertEq(answer, abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, id, Status.Profiling));
    }

    function test_nothing_leads_out_of_closed_or_back_to_none() public pure {
        for (uint8 i = 0; i <= uint8(type(Status).max); i++) {
            vm.assertEq(Lifecycle.movers(Status.Closed, Status(i)), 0);
            vm.assertEq(Lifecycle.movers(Status(i), Status.None), 0);
        }
    }
}
