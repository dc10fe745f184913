// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ClaimCharge} from "../../../contracts/market/IChallenges.sol";
import {Opening} from "../../../contracts/market/ProfileTypes.sol";
import {MarketGasBase} from "./MarketGasBase.sol";

/// @notice Gas of the calls about disputes of verdicts, on record in .ci/gas.json.
contract ChallengesGas is MarketGasBase {
    function test_challenge() public metered {
        _toContested(true);
        ClaimCharge memory charge = _chargeOf(0, true);
        Opening memory opening = _opening();
        _cheapGames();
        _announceCharge(challenger, charge);
        _begin(challenger);
        challenges.challenge(id, charge, opening);
    }

    /// @dev Part of the game's last transaction.
    function test_challenge_report_stood() public metered {
        _meterReport(true);
    }

    function test_challenge_report_lost() public metered {
        _meterReport(false);
    }

    function test_challenge_settle_stood() public metered {
        _meterSettlement(true);
    }

    function test_challenge_settle_lost() public metered {
        _meterSettlement(false);
    }

    function test_challenge_settle_moot() public metered {
        _toContested(true);
        uint256 number = _challenge(challenger);
        _end(_challenge(solver), false);
        _begin(challenger);
        challenges.settleDispute(number);
    }

    function _meterReport(bool asserterWon) private {
        _toContested(true);
        uint256 number = _challenge();
        _begin(address(game));
        challenges.onResolved(number, asserterWon);
    }

    function _meterSettlement(bool asserterWon) private {
        _toContested(true);
        uint256 number = _challenge();
        game.report(number, asserterWon);
        _begin(challenger);
        challenges.settleDispute(number);
    }
}
