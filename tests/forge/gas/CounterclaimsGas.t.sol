// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ClaimCharge} from "../../../contracts/market/IChallenges.sol";
import {Opening, Reordered, Rerun} from "../../../contracts/market/ProfileTypes.sol";
import {Claim, LogProof} from "../../../contracts/market/TaskTypes.sol";
import {CounterclaimBase} from "../market/CounterclaimBase.sol";
import {MarketMeter} from "./MarketGasBase.sol";

/// @notice Gas of the calls about objections in tolerant mode, on record in .ci/gas.json.
contract CounterclaimsGas is MarketMeter, CounterclaimBase {
    function test_counterclaim_post() public metered {
        _toContested(true);
        Claim memory claim = _bad(_one(false));
        LogProof memory logProof = LogProof(_inclusion(claim.segment), _inclusion(claim.segment + 1));
        _announceCounterclaim(challenger, _hash(claim));
        Rerun[] memory none = new Rerun[](0);
        _begin(challenger);
        counterclaims.counterclaim(id, claim, logProof, none, type(uint128).max);
    }

    function test_counterclaim_contest() public metered {
        _toContested(true);
        uint256 number = _counterclaim(challenger, _one(false));
        ClaimCharge memory charge = _charge(_one(false));
        _announceContest(solver, number, charge);
        Reordered memory none = Reordered(0, new bytes32[](0));
        Rerun[] memory look = new Rerun[](0);
        _cheapGames();
        _begin(solver);
        counterclaims.contest(number, charge, look, none, Opening(HEADER, PAYLOAD, type(uint128).max));
    }

    function test_counterclaim_settle_fallen() public metered {
        _toContested(true);
        uint256 dispute = _contest(solver, _counterclaim(challenger, _one(false)), _charge(_one(false)));
        counterclaimGame.report(dispute, false);
        _begin(solver);
        counterclaims.settleDispute(dispute);
    }

    function test_counterclaim_conclude() public metered {
        _toContested(true);
        uint256 number = _counterclaim(challenger, _one(false));
        _pass(_terms().challengeWindow + 1);
        _begin(challenger);
        counterclaims.conclude(number);
    }
}
