// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ForcedErrors} from "../../../contracts/incentives/ForcedErrors.sol";
import {Claim} from "../../../contracts/market/TaskTypes.sol";
import {Base} from "../Base.sol";

/// @notice Verdicts are wrong on purpose as often as was meant, in one place, and in nothing that tells.
contract ForcedErrorsTest is Base {
    uint256 private constant QUARTER = 1 << 30;
    uint256 private constant TENTH = 429_496_730;

    function test_rates_have_bounds() public {
        ForcedErrors.checkRate(1 << 24);
        ForcedErrors.checkRate(1 << 30);
        uint256[4] memory bad = [uint256(0), (1 << 24) - 1, (1 << 30) + 1, type(uint256).max];
        for (uint256 i = 0; i < bad.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(ForcedErrors.RateOutOfBounds.selector, bad[i]));
            this.check(bad[i]);
        }
    }

    function check(uint256 rate) external pure {
        ForcedErrors.checkRate(rate);
    }

    /// @dev One error in four: 1e5 draws have a relative standard error of 0.55 %, so a bound of 1 % is 1.8 of them.
    /// The draws are fixed.
    function test_the_rate_of_errors_is_the_one_that_was_meant() public pure {
        uint256 forced = _forced(QUARTER, 100_000);
        vm.assertGe(forced, 24_750);
        vm.assertLe(forced, 25_250);
    }

    /// @dev Truebit tested a bit of the hash: every second verdict was wrong where one in ten was meant. A tenth of 1e4
    /// draws has a standard error of 30.
    function test_truebit_half_of_all_verdicts_are_wrong_where_a_tenth_was_meant() public pure {
        uint256 forced = _forced(TENTH, 10_000);
        vm.assertGe(forced, 1_000 - 90);
        vm.assertLe(forced, 1_000 + 90);
    }

    /// @dev The same draw with a higher rate is forced if it was with a lower one; zero never, and it is never certain.
    function testFuzz_a_higher_rate_forces_more(bytes32 seed, bytes32 secret, uint256 rate, uint256 more) public pure {
        rate = bound(rate, 0, QUARTER);
        more = bound(more, rate, QUARTER);
        if (ForcedErrors.isForced(rate, seed, "task", 1, secret)) {
            vm.assertTrue(ForcedErrors.isForced(more, seed, "task", 1, secret));
        }
        vm.assertFalse(ForcedErrors.isForced(0, seed, "task", 1, secret));
    }

    /// @dev Exact, by the first 32 bits: a draw is forced if they are below the rate.
    function testFuzz_the_first_bits_decide(bytes32 seed, bytes32 secret, uint256 rate) public pure {
        rate = bound(rate, 1 << 24, QUARTER);
        uint256 first = uint256(keccak256(abi.encode("forced", seed, bytes32("task"), uint32(1), secret))) >> 224;
        vm.assertEq(ForcedErrors.isForced(rate, seed, "task", 1, secret), first < rate);
    }

    /// @dev 4,000 draws over four claims: 1,000 each, with a standard error of 27.
    function test_every_claim_is_as_likely_to_be_the_wrong_one() public pure {
        uint256[4] memory hits;
        for (uint256 i = 0; i < 4_000; ++i) {
            ++hits[ForcedErrors.index(keccak256(abi.encode(i)), "task", 1, "secret", 4)];
        }
        for (uint256 i = 0; i < 4; ++i) {
            vm.assertGt(hits[i], 1_000 - 110);
            vm.assertLt(hits[i], 1_000 + 110);
        }
    }

    /// @dev What is hidden binds task, seating, salt and every word of the claim; a commitment binds account, task and
    /// secret.
    function testFuzz_what_is_hidden_binds(Claim memory claim, bytes32 salt) public pure {
        bytes32 hidden = ForcedErrors.sealedClaim("task", 1, salt, claim);
        vm.assertNotEq(hidden, ForcedErrors.sealedClaim("another", 1, salt, claim));
        vm.assertNotEq(hidden, ForcedErrors.sealedClaim("task", 2, salt, claim));
        vm.assertNotEq(hidden, ForcedErrors.sealedClaim("task", 1, ~salt, claim));
        claim.replay = ~claim.replay;
        vm.assertNotEq(hidden, ForcedErrors.sealedClaim("task", 1, salt, claim));
        bytes32 commitment = ForcedErrors.commitment(address(1), "task", salt);
        vm.assertNotEq(commitment, ForcedErrors.commitment(address(2), "task", salt));
        vm.assertNotEq(commitment, ForcedErrors.commitment(address(1), "another", salt));
        vm.assertNotEq(commitment, ForcedErrors.commitment(address(1), "task", ~salt));
    }

    function _forced(uint256 rate, uint256 draws) private pure returns (uint256 forced) {
        for (uint256 i = 0; i < draws; ++i) {
            uint256 used;
            assembly ("memory-safe") {
                used := mload(0x40)
            }
            if (ForcedErrors.isForced(rate, keccak256(abi.encode(i)), "task", 1, "secret")) ++forced;
            // Nothing of a draw is kept: or memory would grow with every one.
            assembly ("memory-safe") {
                mstore(0x40, used)
            }
        }
    }
}
