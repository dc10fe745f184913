// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Segment} from "../../../contracts/market/IObjections.sol";
import {Opening} from "../../../contracts/market/ProfileTypes.sol";
import {ObjectionBase} from "../market/ObjectionBase.sol";
import {MarketMeter} from "./MarketGasBase.sol";

/// @notice Gas of the calls about objections in exact mode, on record in .ci/gas.json.
contract ObjectionsGas is MarketMeter, ObjectionBase {
    function test_objection_open() public metered {
        _toExactlyContested(true);
        uint32 free = _one(false);
        Segment memory segment = _segment(free);
        _announceObjection(challenger, free);
        _cheapGames();
        _begin(challenger);
        objections.object(id, segment, Opening(HEADER, PAYLOAD, type(uint128).max));
    }

    /// @dev Part of the game's last transaction.
    function test_objection_report_fallen() public metered {
        _toExactlyContested(true);
        uint256 number = _object(challenger, _one(false));
        _begin(address(objectionGame));
        objections.onResolved(number, false);
    }

    function test_objection_settle_stood() public metered {
        _meterSettlement(true);
    }

    function test_objection_settle_fallen() public metered {
        _meterSettlement(false);
    }

    function _meterSettlement(bool asserterWon) private {
        _toExactlyContested(true);
        uint256 number = _object(challenger, _one(false));
        objectionGame.report(number, asserterWon);
        _begin(challenger);
        objections.settleDispute(number);
    }
}
