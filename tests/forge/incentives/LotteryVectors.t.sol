// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ranks} from "../../../contracts/incentives/Ranks.sol";
import {Claim, ForcedErrors, Jackpot, LotteryBase, Sortition} from "./LotteryBase.sol";

/// @notice What `pol.incentives` computes of draws, planted errors and the jackpot is what the contracts compute.
contract LotteryVectorsTest is LotteryBase {
    string private json;
    address[] private accounts;

    function test_tickets_over_time_and_their_draws() public {
        json = vm.readFile("fixtures/vectors/sortition.json");
        bytes[] memory names = vm.parseJsonBytesArray(json, ".accounts");
        for (uint256 i = 0; i < names.length; ++i) {
            accounts.push(address(bytes20(names[i])));
            _bring(accounts[i], 1000 * UNIT);
        }
        _play();
        uint256[] memory times = vm.parseJsonUintArray(json, ".t");
        uint256[] memory totals = vm.parseJsonUintArray(json, ".total");
        vm.warp(times[times.length - 1]);
        for (uint256 k = 0; k < times.length; ++k) {
            vm.assertEq(sortition.total(uint64(times[k])), totals[k]);
        }
        for (uint256 i = 0; i < accounts.length; ++i) {
            uint256[] memory tickets = vm.parseJsonUintArray(json, _at(".tickets", i, ""));
            for (uint256 k = 0; k < times.length; ++k) {
                vm.assertEq(sortition.tickets(accounts[i], uint64(times[k])), tickets[k]);
            }
        }
        vm.assertEq(sortition.watchers(), vm.parseJsonUint(json, ".watchers"));
        for (uint256 i = 0; i < 5; ++i) {
            _compareDraw(i);
        }
    }

    function test_limits_of_watching() public {
        json = vm.readFile("fixtures/vectors/sortition.json");
        string[] memory totals = vm.parseJsonStringArray(json, ".limit_total");
        uint256[] memory watchers = vm.parseJsonUintArray(json, ".limit_watchers");
        bytes32[] memory limits = vm.parseJsonBytes32Array(json, ".limit");
        for (uint256 i = 0; i < totals.length; ++i) {
            (uint256 total, uint256 limit) = (vm.parseUint(totals[i]), uint256(limits[i]));
            vm.assertTrue(Ranks.isBelow(limit - 1, total, watchers[i]));
            vm.assertFalse(Ranks.isBelow(limit, total, watchers[i]));
        }
    }

    function test_planted_errors() public {
        json = vm.readFile("fixtures/vectors/forced_errors.json");
        uint256 count = vm.parseJsonUint(json, ".count");
        for (uint256 i = 0; i < count; ++i) {
            _comparePlanted(i);
        }
    }

    function test_shares_and_taxes() public {
        json = vm.readFile("fixtures/vectors/jackpot.json");
        uint256 count = vm.parseJsonUint(json, ".count");
        for (uint256 i = 0; i < count; ++i) {
            _compareShare(i);
        }
    }

    function test_commitments_of_watchers() public {
        json = vm.readFile("fixtures/vectors/jackpot.json");
        for (uint256 i = 0; i < 4; ++i) {
            bytes memory who = vm.parseJsonBytes(json, _at(".watches", i, ".account"));
            bytes32 found = keccak256(
                abi.encode(
                    address(bytes20(who)),
                    _word(".watches", i, ".task"),
                    _number(".watches", i, ".seating"),
                    _number(".watches", i, ".index"),
                    _word(".watches", i, ".entry"),
                    _word(".watches", i, ".salt")
                )
            );
            vm.assertEq(found, _word(".watches", i, ".commitment"));
        }
    }

    /// @dev The history, by the verbs that lead to it.
    function _play() private {
        uint256[] memory who = vm.parseJsonUintArray(json, ".history_account");
        uint256[] memory tickets = vm.parseJsonUintArray(json, ".history_tickets");
        uint256[] memory at = vm.parseJsonUintArray(json, ".history_at");
        for (uint256 i = 0; i < who.length; ++i) {
            vm.warp(at[i]);
            uint256 had = sortition.ticketsNow(accounts[who[i]]);
            vm.prank(accounts[who[i]]);
            if (tickets[i] > had) sortition.enrol(uint32(tickets[i] - had));
            else sortition.resign(uint32(had - tickets[i]));
        }
    }

    function _compareDraw(uint256 i) private view {
        bool forSeat = keccak256(bytes(vm.parseJsonString(json, _at(".draws", i, ".duty")))) == keccak256("seat");
        uint256[] memory who = vm.parseJsonUintArray(json, _at(".draws", i, ".account"));
        uint256[] memory tickets = vm.parseJsonUintArray(json, _at(".draws", i, ".ticket"));
        uint256[] memory watches = vm.parseJsonUintArray(json, _at(".draws", i, ".watches"));
        bytes32[] memory ranks = vm.parseJsonBytes32Array(json, _at(".draws", i, ".rank"));
        for (uint256 k = 0; k < who.length; ++k) {
            (address one, uint32 ticket) = (accounts[who[k]], uint32(tickets[k]));
            if (forSeat) vm.assertEq(_seatRank(i, one, ticket), uint256(ranks[k]));
            else vm.assertEq(_watches(i, one, ticket), watches[k] == 1);
        }
    }

    function _seatRank(uint256 i, address one, uint32 ticket) private view returns (uint256) {
        (bytes32 task, uint32 seating, uint64 since, bytes32 seed) = _draw(i);
        return sortition.seatRank(one, ticket, task, seating, since, seed);
    }

    function _watches(uint256 i, address one, uint32 ticket) private view returns (bool) {
        (bytes32 task, uint32 seating, uint64 since, bytes32 seed) = _draw(i);
        return sortition.isWatcher(one, ticket, task, seating, since, seed);
    }

    function _draw(uint256 i) private view returns (bytes32 task, uint32 seating, uint64 since, bytes32 seed) {
        task = _word(".draws", i, ".task");
        seating = uint32(_number(".draws", i, ".seating"));
        since = uint64(_number(".draws", i, ".since"));
        seed = _word(".draws", i, ".seed");
    }

    function _comparePlanted(uint256 i) private view {
        (bytes32 seed, bytes32 task, bytes32 secret) =
            (_word(".cases", i, ".seed"), _word(".cases", i, ".task"), _word(".cases", i, ".secret"));
        uint32 seating = uint32(_number(".cases", i, ".seating"));
        bool forced = ForcedErrors.isForced(_number(".cases", i, ".rate"), seed, task, seating, secret);
        vm.assertEq(forced, _number(".cases", i, ".forced") == 1);
        uint32 index = ForcedErrors.index(seed, task, seating, secret, uint32(_number(".cases", i, ".draws")));
        vm.assertEq(index, _number(".cases", i, ".index"));
        vm.assertEq(ForcedErrors.errorRoot(seed, task, seating, secret), _word(".cases", i, ".error"));
        address who = address(bytes20(vm.parseJsonBytes(json, _at(".cases", i, ".account"))));
        vm.assertEq(ForcedErrors.commitment(who, task, secret), _word(".cases", i, ".commitment"));
        bytes32 hidden = ForcedErrors.sealedClaim(task, seating, _word(".cases", i, ".salt"), _claim(i));
        vm.assertEq(hidden, _word(".cases", i, ".sealed"));
    }

    function _claim(uint256 i) private view returns (Claim memory claim) {
        bytes32[] memory roots = vm.parseJsonBytes32Array(json, _at(".cases", i, ".roots"));
        string[] memory distances = vm.parseJsonStringArray(json, _at(".cases", i, ".distances"));
        string[] memory references = vm.parseJsonStringArray(json, _at(".cases", i, ".references"));
        claim.segment = uint32(_number(".cases", i, ".segment"));
        (claim.start, claim.end, claim.replay) = (roots[0], roots[1], roots[2]);
        for (uint256 k = 0; k < 3; ++k) {
            (claim.distances[k], claim.references[k]) = (vm.parseUint(distances[k]), vm.parseUint(references[k]));
        }
    }

    function _compareShare(uint256 i) private {
        Sortition tickets = new Sortition(vault, UNIT, uint32(_number(".rows", i, ".watchers")));
        uint32 shares = uint32(_number(".rows", i, ".shares"));
        Jackpot fund = new Jackpot(vault, tickets, shares, uint32(_number(".rows", i, ".rate")), 60, 1);
        uint128 amount = uint128(vm.parseUint(vm.parseJsonString(json, _at(".rows", i, ".reserved"))));
        vm.assertEq(fund.tax(amount), vm.parseUint(vm.parseJsonString(json, _at(".rows", i, ".tax"))));
        vm.assertEq(fund.share(amount), vm.parseUint(vm.parseJsonString(json, _at(".rows", i, ".share"))));
    }

    function _at(string memory list, uint256 i, string memory key) private pure returns (string memory) {
        return string.concat(list, "[", vm.toString(i), "]", key);
    }

    function _word(string memory list, uint256 i, string memory key) private view returns (bytes32) {
        return vm.parseJsonBytes32(json, _at(list, i, key));
    }

    function _number(string memory list, uint256 i, string memory key) private view returns (uint256) {
        return vm.parseJsonUint(json, _at(list, i, key));
    }
}
