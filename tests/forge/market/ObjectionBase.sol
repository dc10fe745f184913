// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataDemandsBase} from "./DataDemandsBase.sol";
import {Claim, LogProof, Segment, Terms} from "./MarketBase.sol";

/// @notice A task in exact mode, two of whose four segments are drawn, and who objects to the others.
abstract contract ObjectionBase is DataDemandsBase {
    function _terms() internal view virtual override returns (Terms memory) {
        return _exact(super._terms());
    }

    function _claims(bool accepts)
        internal
        view
        virtual
        override
        returns (Claim[] memory claims, LogProof[] memory logProofs)
    {
        (claims, logProofs) = super._claims(true);
        for (uint256 i = 0; i < claims.length; ++i) {
            claims[i].replay = claims[i].end;
            claims[i].distances = [uint256(0), 0, 0];
        }
        if (!accepts) claims[0].replay = "another";
    }

    function _toExactlyContested(bool accepts) internal {
        _toExactlyVerifying(false);
        _judge(verifier, accepts);
    }

    function _object(address who, uint32 index) internal returns (uint256) {
        Segment memory segment = _segment(index);
        _announceObjection(who, index);
        vm.prank(who);
        return objections.object(id, segment, _opening());
    }

    /// @dev The game ends an objection, and somebody settles it.
    function _endObjection(uint256 number, bool asserterWon) internal {
        objectionGame.report(number, asserterWon);
        objections.settleDispute(number);
    }
}
