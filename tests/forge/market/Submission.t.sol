// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAuction} from "../../../contracts/incentives/IAuction.sol";
import {Desk, IJackpot, ISeats, ISettlement, ITaskRegistry, MarketBase, Outcome, Status} from "./MarketBase.sol";
import {Terms} from "./MarketBase.sol";
import {Market, Settlement} from "./MarketDeployment.sol";

/// @notice Which terms make a task, what it locks, and how its submitter withdraws it.
contract SubmissionTest is MarketBase {
    function test_the_id_is_derived_and_never_repeats() public {
        _submit();
        Terms memory s = _terms();
        vm.prank(submitter);
        bytes32 second = registry.submit(s);
        vm.assertNotEq(id, second);
        vm.assertEq(second, registry.computeTaskId(submitter, 1, s));
        vm.assertEq(id, keccak256(abi.encode(block.chainid, address(registry), submitter, uint256(0), s)));
        vm.assertEq(registry.nonces(submitter), 2);
        vm.assertEq(registry.terms(second).program, bytes32("program"));
        vm.assertEq(registry.task(second).submitter, submitter);
        vm.assertEq(uint256(registry.task(second).status), uint256(Status.Profiling));
    }

    function test_emits_everything() public {
        vm.expectEmit(address(registry));
        emit ITaskRegistry.TaskSubmitted(id, submitter, 0, _terms(), settlement.escrowOf(_terms()));
        vm.expectEmit(address(registry));
        emit ITaskRegistry.Advanced(id, Status.Profiling, 0);
        _submit();
    }

    function test_the_escrow_is_locked_and_covers_all_that_can_be_paid() public {
        Terms memory s = _terms();
        (s.workUnits, s.unitPrice, s.verifierFee, s.jackpot) = (3, uint128(7 << 32) + 1, 11, 2 ether);
        // 3 * (7 * 2^32 + 1) / 2^32, rounded up; half a percent of it, rounded up; two fees; the tax.
        uint256 escrow = 22 + 1 + 22 + jackpot.tax(2 ether);
        vm.assertEq(settlement.escrowOf(s), escrow);
        vm.prank(submitter);
        bytes32 taskId = registry.submit(s);
        vm.assertEq(vault.locked(address(settlement), taskId, submitter), escrow);
        vm.assertEq(_gain(submitter), -int256(escrow));
        // Nobody is paid for a profile where there is none.
        vm.assertEq(settlement.escrowOf(_exact(s)), escrow - 11);
    }

    function test_a_cancelled_task_gives_back_the_stake_of_a_claim() public {
        _submit();
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
        vm.prank(verifier);
        seats.claim(id, 0, 0);
        _cancel();
        vm.assertEq(_gain(verifier), 0);
        vm.assertEq(_gain(submitter), 0);
        _pass(1 hours);
        vm.expectRevert(abi.encodeWithSelector(ISeats.NoSeat.selector, id));
        seats.decide(id);
    }

    /// @dev Thresholds too low would keep all others away. In every round of the task.
    function test_the_profiler_has_no_bid() public {
        _toBidding();
        for (uint256 i = 0; i < 2; ++i) {
            bytes32 roundId = auction.lastRound(address(registry), id);
            vm.assertEq(auction.round(roundId).verifier, verifier);
            _expectRefusal(verifier, abi.encodeWithSelector(IAuction.BidderIsParty.selector, verifier));
            auction.bid(roundId, "bid");
            vm.prank(nextVerifier);
            auction.bid(roundId, "bid");
            _pass(2 * _terms().bidWindow + 1);
            registry.award(id);
        }
    }

    /// @dev A solver that is gone gives it back: nobody keeps the fund from others with a task that nobody works on.
    function test_the_award_reserves_the_jackpot() public {
        _toBidding();
        vm.assertEq(jackpot.reserved(), 0);
        _award();
        vm.assertEq(jackpot.reserved(), _terms().jackpot);
        _pass(_promise + 1);
        settlement.claimSolverDefault(id);
        vm.assertEq(jackpot.reserved(), 0);
        _award();
        (uint128 amount,) = jackpot.reserves(id);
        vm.assertEq(amount, _terms().jackpot);
        vm.assertEq(jackpot.reserved(), _terms().jackpot);
        _pass(_promise + 1);
        settlement.claimSolverDefault(id);
        vm.assertEq(jackpot.reserved(), 0);
        _cancel();
    }

    /// @dev Nobody works for a verdict that can't be watched, and anybody may fill the fund.
    function test_a_fund_that_is_short_chooses_no_solver() public {
        _toBidding();
        bytes32 taskId = id;
        uint256 left = jackpot.available() - _terms().jackpot + 1;
        vm.prank(address(registry));
        jackpot.reserve("another task", uint128(left));
        _revealed();
        bytes memory reason =
            abi.encodeWithSelector(IJackpot.FundShort.selector, _terms().jackpot - 1, _terms().jackpot);
        vm.expectRevert(reason);
        registry.award(taskId);
        vm.prank(challenger);
        jackpot.donate(1);
        registry.award(taskId);
        _expectStatus(Status.Training);
    }

    function test_desks_are_named_once_and_by_the_deployer() public {
        Market memory m;
        Settlement fresh = new Settlement(vault, treasury);
        _expectRefusal(submitter, abi.encodeWithSelector(Desk.NotAllowed.selector, submitter));
        fresh.wire(m);
        fresh.wire(m);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(this)));
        fresh.wire(m);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(this)));
        registry.wire(m);
    }

    function test_the_treasury_is_somebody() public {
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(0)));
        this.newSettlement(address(0));
    }

    function _cancel() private {
        vm.prank(submitter);
        registry.cancel(id);
        _expectStatus(Status.Closed);
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Cancelled));
        vm.assertEq(vault.locked(address(settlement), id, submitter), 0);
    }

    /// @dev A call of its own: a cheatcode stands in the place of `new`, and would itself be the call that has to
    /// revert.
    function newSettlement(address treasury_) external {
        new Settlement(vault, treasury_);
    }
}

/// @notice What the terms of a task may say: the registry takes and refuses the rows of fixtures/vectors/terms.jsonl,
/// and names the field that breaks a bound.
contract TermsTest is MarketBase {
    string private constant PATH = "fixtures/vectors/terms.jsonl";

    function test_rows() public {
        string memory ordinary = vm.readLine(PATH);
        string[] memory names = vm.parseJsonKeys(ordinary, ".terms");
        uint256 count = 0;
        for (string memory row = vm.readLine(PATH); bytes(row).length > 0; row = vm.readLine(PATH)) {
            Terms memory s = abi.decode(_words(names, ordinary, row), (Terms));
            string memory refused = vm.parseJsonString(row, ".refused");
            vm.prank(submitter);
            (bool taken, bytes memory answer) = address(registry).call(abi.encodeCall(registry.submit, (s)));
            vm.assertTrue(taken == (bytes(refused).length == 0), row);
            bytes memory reason = abi.encodeWithSelector(ITaskRegistry.InvalidTerms.selector, refused);
            if (!taken) vm.assertEq(answer, reason, row);
            ++count;
        }
        vm.assertGt(count, 100);
    }

    function test_a_price_that_no_desk_could_hold() public {
        Terms memory s = _terms();
        (s.workUnits, s.unitPrice, s.secondPrice) = (1 << 112, 1 << 112, 0);
        _expectRefusal(submitter, abi.encodeWithSelector(ISettlement.PriceTooHigh.selector, uint256(1 << 112)));
        registry.submit(s);
    }

    /// @dev The fields are words in the order of the struct.
    function _words(string[] memory names, string memory ordinary, string memory row)
        private
        pure
        returns (bytes memory words)
    {
        string[] memory changes = vm.parseJsonKeys(row, ".changes");
        for (uint256 i = 0; i < names.length; ++i) {
            (string memory json, string memory place) = (ordinary, string.concat(".terms.", names[i]));
            for (uint256 k = 0; k < changes.length; ++k) {
                if (keccak256(bytes(changes[k])) != keccak256(bytes(names[i]))) continue;
                (json, place) = (row, string.concat(".changes.", names[i]));
            }
            words = abi.encodePacked(words, vm.parseJsonUint(json, place));
        }
    }
}
