// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Distance} from "../../../contracts/dispute/Distance.sol";

contract DistanceCalls {
    function add(uint256 a, uint256 b) external pure returns (uint256) {
        return Distance.add(a, b);
    }

    function ofWords(uint32 x, uint32 y, uint256 dtype, uint256 scale) external pure returns (uint256) {
        return Distance.ofWords(x, y, dtype, scale);
    }
}

/// @notice Laws of distances. forge draws inputs, `.ci/audit prove` proves them for all.
contract DistanceLaws {
    uint256 private constant SATURATION = 2 ** 191;
    DistanceCalls private calls = new DistanceCalls();

    function testProve_add_never_reverts(uint256 a, uint256 b) public view {
        (bool succeeded,) = address(calls).staticcall(abi.encodeCall(DistanceCalls.add, (a, b)));
        assert(succeeded);
    }

    function testProve_add_commutes(uint256 a, uint256 b) public pure {
        assert(Distance.add(a, b) == Distance.add(b, a));
    }

    function testProve_add_associates(uint256 a, uint256 b, uint256 c) public pure {
        assert(Distance.add(Distance.add(a, b), c) == Distance.add(a, Distance.add(b, c)));
    }

    function testProve_add_is_exact_or_infinite(uint256 a, uint256 b) public pure {
        uint256 sum = Distance.add(a, b);
        if (a < SATURATION && b < SATURATION && a + b < SATURATION) assert(sum == a + b);
        else assert(sum == Distance.INFINITE);
    }

    function testProve_add_is_monotone(uint256 a, uint256 b, uint256 more) public pure {
        if (more < a) (a, more) = (more, a);
        assert(Distance.add(a, b) <= Distance.add(more, b));
        assert(Distance.add(a, b) >= a || a >= SATURATION);
    }

    function testProve_words_never_revert(uint32 x, uint32 y, uint256 dtype, uint256 scale) public view {
        (bool succeeded,) =
            address(calls).staticcall(abi.encodeCall(DistanceCalls.ofWords, (x, y, dtype % 4, scale % 24)));
        assert(succeeded);
    }

    function testProve_words_commute(uint32 x, uint32 y, uint256 scale) public pure {
        assert(Distance.ofWords(x, y, 1, scale % 24) == Distance.ofWords(y, x, 1, scale % 24));
        assert(Distance.ofWords(x, y, 2, scale % 24) == Distance.ofWords(y, x, 2, scale % 24));
    }

    function testProve_a_word_has_no_distance_from_itself(uint32 x, uint256 scale) public pure {
        uint256 distance = Distance.ofWords(x, x, 1, scale % 24);
        bool isNaN = x & 0x7fffffff > 0x7f800000;
        assert(distance == (isNaN ? Distance.INFINITE : 0));
        assert(Distance.ofWords(x, x, 2, scale % 24) == 0);
    }
}
