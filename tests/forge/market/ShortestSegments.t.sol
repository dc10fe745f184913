// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IVerdicts, Look} from "../../../contracts/market/IVerdicts.sol";
import {Claim, LogProof, Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice Segments of one step, all of which are drawn: one entry of the log is no state, and the verdict can say so.
contract ShortestSegmentsTest is MarketBase {
    function test_a_zero_entry_is_said_to_be_none() public {
        log[2] = 0;
        _submit();
        _award();
        _commit();
        _seatVerifier(verifier, false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        bytes32 no = bytes32(type(uint256).max);
        for (uint256 i = 0; i < 4; ++i) {
            claims[i].replay = claims[i].end;
            claims[i].distances = [uint256(0), 0, 0];
            claims[i].before = claims[i].start;
            if (claims[i].start == 0 || claims[i].end == 0) {
                (claims[i].replay, claims[i].before, claims[i].receipt) = (no, no, no);
            }
        }
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
        vm.assertEq(uint256(verdicts.verdict(id).rejecting), 2);
    }

    function test_before_the_only_step_is_the_start() public {
        _submit();
        _award();
        _commit();
        _seatVerifier(verifier, false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        for (uint256 i = 0; i < 4; ++i) {
            (claims[i].replay, claims[i].before) = (claims[i].end, claims[i].start);
        }
        claims[3].before = "another";
        _expectRefusal(verifier, abi.encodeWithSelector(IVerdicts.WrongReceipt.selector, uint256(3)));
        verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
    }

    function _terms() internal view override returns (Terms memory s) {
        s = _exact(super._terms());
        s.draws = 4;
        s.interval = 1;
        s.steps = 4;
    }
}
