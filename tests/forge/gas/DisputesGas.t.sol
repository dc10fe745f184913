// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim, ClaimCharge, CounterclaimBase, LogProof} from "../market/CounterclaimBase.sol";
import {DataDemand, DataDemandsBase, Piece} from "../market/DataDemandsBase.sol";
import {ClaimCharge, Opening, Reordered, Rerun} from "../market/MarketBase.sol";
import {ObjectionBase, Segment} from "../market/ObjectionBase.sol";
import {MarketGasBase, MarketMeter} from "./MarketGasBase.sol";

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

/// @notice Gas of demands for data and of their ends, on record in .ci/gas.json. States of three slots, the first of
/// three leaves.
contract DataDemandsGas is MarketMeter, DataDemandsBase {
    function test_data_demand() public metered {
        _toCommitted();
        uint256 bond = demands.bondOf();
        _begin(challenger);
        demands.demand(id, 1, 0, 1, bond);
    }

    function test_data_answer() public metered {
        _toCommitted();
        DataDemand memory d = _demand(challenger);
        Piece memory piece = _piece(d.entry, d.position, d.leaf);
        _begin(solver);
        demands.answer(d, piece);
    }

    /// @dev The solver's stake is split, and another auction begins.
    function test_data_withheld() public metered {
        _toCommitted();
        DataDemand memory d = _demand(challenger);
        vm.warp(d.deadline + 1);
        _begin(challenger);
        demands.expire(d);
    }
}
