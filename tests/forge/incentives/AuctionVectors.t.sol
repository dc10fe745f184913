// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionBase, AuctionRules, AuctionTerms} from "./AuctionBase.sol";

/// @notice The library's functions for calls from outside.
contract AuctionRulesHarness {
    function roundId(address desk, bytes32 taskId, uint32 number, AuctionTerms calldata terms)
        external
        view
        returns (bytes32)
    {
        return AuctionRules.roundId(desk, taskId, number, terms);
    }
}

/// @notice What `pol.incentives.auction` computes is what the contract does.
contract AuctionVectorsTest is AuctionBase {
    string private json;
    string private place;
    AuctionTerms private _next;

    function setUp() public override {
        json = vm.readFile("fixtures/vectors/auction.json");
        super.setUp();
        _next = super._terms();
    }

    function _terms() internal view override returns (AuctionTerms memory) {
        return _next;
    }

    function test_winners_and_prices() public {
        uint256 rounds = vm.parseJsonUint(json, ".round_count");
        vm.assertGt(rounds, 10);
        for (uint256 i = 0; i < rounds; ++i) {
            place = string.concat(".rounds[", vm.toString(i), "]");
            _play();
        }
    }

    function test_ids_and_commitments() public {
        place = ".id";
        address rules = _address("auction");
        vm.etch(rules, address(new AuctionRulesHarness()).code);
        AuctionTerms memory t;
        t.maximum = uint128(_number("terms.maximum"));
        t.solverStake = uint128(_number("terms.solver_stake"));
        t.secondPrice = uint128(_number("terms.second_price"));
        t.workUnits = uint128(_number("terms.work_units"));
        (t.submitter, t.verifier) = (_address("terms.submitter"), _address("terms.verifier"));
        (t.window, t.trainingWindow) = (uint32(_number("terms.window")), uint32(_number("terms.training_window")));
        t.thresholds = _word("terms.thresholds");
        bytes32 round =
            AuctionRulesHarness(rules).roundId(_address("desk"), _word("task"), uint32(_number("number")), t);
        vm.assertEq(round, _word("round"));
        vm.assertEq(
            AuctionRules.commitment(
                round, _address("bidder"), uint128(_number("price")), uint32(_number("seconds")), _word("salt")
            ),
            _word("commitment")
        );
    }

    function test_rates_and_admission() public {
        place = ".admission";
        vm.assertEq(_number("entry_work"), ENTRY_WORK);
        vm.assertEq(_number("growth"), GROWTH);
        uint256[] memory rates = _numbers("rate");
        (uint256[] memory work, uint256[] memory promised) = (_numbers("accepted_work"), _numbers("accepted_seconds"));
        for (uint256 i = 0; i < rates.length; ++i) {
            _next.workUnits = uint128(work[i]);
            _open();
            _bid(ada, 0, uint32(promised[i]));
            _toReveals();
            _reveal(ada, 0, uint32(promised[i]));
            desk.conclude(TASK);
            desk.release(TASK, ada);
            desk.recordAccepted(TASK);
            vm.assertEq(auction.rate(ada), rates[i]);
        }
        uint256[] memory admitted = _numbers("admitted");
        (work, promised) = (_numbers("work"), _numbers("seconds"));
        uint256 sum;
        for (uint256 i = 0; i < admitted.length; ++i) {
            vm.assertEq(auction.admits(ada, uint128(work[i]), uint32(promised[i])), admitted[i] == 1);
            sum += admitted[i];
        }
        vm.assertTrue(0 < sum && sum < admitted.length);
    }

    function test_what_a_sealed_bid_costs() public {
        place = "";
        (uint256[] memory stakes, uint256[] memory lost) = (_numbers("stakes"), _numbers("forfeited"));
        for (uint256 i = 0; i < stakes.length; ++i) {
            vm.assertEq(AuctionRules.forfeited(uint128(stakes[i])), lost[i]);
        }
        vm.assertGt(stakes.length, 0);
    }

    /// @dev One round of the vectors: bids, reveals in the given order, the end.
    function _play() private {
        _next.maximum = uint128(_number("maximum"));
        _next.secondPrice = uint128(_number("second_price"));
        _next.trainingWindow = uint32(_number("training_window"));
        _open();
        uint256 count = _number("count");
        // An empty list has no type.
        uint256[] memory prices = count == 0 ? new uint256[](0) : _numbers("price");
        uint256[] memory promised = count == 0 ? new uint256[](0) : _numbers("seconds");
        uint256[] memory order = count == 0 ? new uint256[](0) : _numbers("order");
        for (uint256 k = 0; k < count; ++k) {
            vm.deal(address(this), STAKE);
            vault.deposit{value: STAKE}(_bidder(k), STAKE);
            _bid(_bidder(k), uint128(prices[k]), uint32(promised[k]));
        }
        _toReveals();
        for (uint256 k = 0; k < count; ++k) {
            _reveal(_bidder(order[k]), uint128(prices[order[k]]), uint32(promised[order[k]]));
        }
        (address winner, uint128 paid, uint64 deadline) = desk.conclude(TASK);
        vm.assertEq(winner, _address("winner"));
        vm.assertEq(paid, _number("paid"));
        vm.assertEq(deadline, count == 0 ? 0 : vm.getBlockTimestamp() + _number("promised"));
        if (count > 0) desk.release(TASK, winner);
    }

    function _bidder(uint256 i) private pure returns (address) {
        return address(uint160(0x1000 + i));
    }

    function _number(string memory field) private view returns (uint256) {
        return vm.parseJsonUint(json, string.concat(place, ".", field));
    }

    function _numbers(string memory field) private view returns (uint256[] memory) {
        return vm.parseJsonUintArray(json, string.concat(place, ".", field));
    }

    function _word(string memory field) private view returns (bytes32) {
        return vm.parseJsonBytes32(json, string.concat(place, ".", field));
    }

    function _address(string memory field) private view returns (address) {
        return address(bytes20(vm.parseJsonBytes(json, string.concat(place, ".", field))));
    }
}
