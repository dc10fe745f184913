// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheapGame} from "./MarketGasBase.sol";
import {CountedPhase, LoggedEntry, PlanTerms, RoundDemand, RoundEvidence, RoundsBase} from "../rounds/RoundsBase.sol";
import {SignedClaim, SignedRoster} from "../rounds/RoundsBase.sol";

/// @notice Gas of the calls of rounds, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without calldata and
/// the 21,000 of a transaction, and without the game's own work; disputes and evidence with their announcements.
contract RoundsGas is RoundsBase {
    modifier paused() {
        vm.pauseGasMetering();
        _;
    }

    function test_rounds_register() public paused {
        PlanTerms memory t = _terms();
        t.pay += 1;
        _as(PARTIES - 1);
        bonds.register(t);
    }

    function test_rounds_join() public paused {
        _as(PARTIES - 2);
        bonds.join(id);
    }

    function test_rounds_leave() public paused {
        _as(1);
        bonds.startLeaving(id);
    }

    function test_rounds_depart() public paused {
        vm.prank(_party(1));
        bonds.startLeaving(id);
        _pass(4 days + 1);
        _as(2);
        bonds.depart(id, _party(1));
    }

    function test_rounds_dispute() public paused {
        SignedClaim memory signed = _signed(1, 0, "end");
        // A game that costs next to nothing takes the place of the one that writes down what it is told.
        vm.etch(address(game), address(new CheapGame()).code);
        _cool();
        vm.resumeGasMetering();
        vm.assertTrue(_dispute(_party(2), signed));
    }

    function test_rounds_settle_stood() public paused {
        _disputed(true);
        _as(3);
        disputes.settle(1);
    }

    function test_rounds_settle_fell() public paused {
        _disputed(false);
        _as(3);
        disputes.settle(1);
    }

    function test_rounds_two_claims() public paused {
        _shown(_twoClaims(1, 0));
    }

    function test_rounds_unstaked_member_of_100() public paused {
        (SignedRoster memory shown, LoggedEntry memory none) = (_last(100, _party(PARTIES - 2)), _none());
        _shown(abi.encodeCall(RoundEvidence.showUnstakedMember, (id, 0, _party(PARTIES - 2), shown, none)));
    }

    function test_rounds_note_roster_of_100() public paused {
        SignedRoster memory signed = _last(100, _party(1));
        _as(2);
        evidence.noteRoster(id, 0, _party(1), signed);
    }

    function test_rounds_demand_roster() public paused {
        SignedClaim memory signed = _signed(1, 0, "end");
        _as(2);
        demands.demandRoster(id, signed, 1 ether);
    }

    function test_rounds_answer_roster_of_100() public paused {
        SignedRoster memory proof = _last(100, _party(1));
        SignedClaim memory signed = _signedUnder(1, proof.text);
        uint256 bond = demands.rosterBondOf(id);
        vm.prank(_party(2));
        demands.demandRoster(id, signed, bond);
        bytes32 content = keccak256(abi.encode("roster", _digestOf(signed.claim)));
        RoundDemand memory d =
            RoundDemand(id, _party(1), _party(2), uint64(vm.getBlockTimestamp()) + 1 days, bond, content);
        _as(3);
        demands.answerRoster(d, signed.claim, proof);
    }

    function test_rounds_demand_source() public paused {
        SignedClaim memory signed = _signed(1, 0, "end");
        _as(2);
        demands.demandSource(id, signed, _phase(), 0, 1 ether);
    }

    function test_rounds_open() public paused {
        _pass(3 days);
        _as(0);
        shares.open(id);
    }

    function test_rounds_post_1_claim() public paused {
        _postLine(1);
    }

    function test_rounds_post_257_claims() public paused {
        _postLine(257);
    }

    function test_rounds_settle_line() public paused {
        _pass(3 days);
        shares.open(id);
        for (uint256 i = 1; i < 3; ++i) {
            _post(i, 0, 0, 1);
        }
        _pass(2 days + 1);
        _as(3);
        shares.settle(id, 0, _party(1));
    }

    /// @dev A roster whose last member is this worker.
    function _last(uint256 count, address worker) private view returns (SignedRoster memory) {
        address[] memory workers = new address[](count);
        for (uint256 i = 0; i < count; ++i) {
            workers[i] = i + 1 == count ? worker : vm.addr(1000 + i);
        }
        (bytes memory text, bytes memory signature) = _roster(workers, 0, 0);
        // Behind it stand a brace and `],"partners":[],"provisional":false,"routes":[]}`.
        return _shownRoster(text, signature, text.length - 49 - _seat(count - 1, worker).length);
    }

    function _none() private pure returns (LoggedEntry memory logged) {}

    function _shown(bytes memory data) private {
        _cool();
        vm.resumeGasMetering();
        _announce(_party(2), data);
        vm.prank(_party(2));
        (bool done,) = address(evidence).call(data);
        vm.assertTrue(done);
    }

    function _postLine(uint256 count) private {
        _pass(3 days);
        shares.open(id);
        (bytes memory line, CountedPhase[] memory phases) = (_line(0, count), _phasesOfLine());
        _as(1);
        shares.post(id, 0, line, phases);
    }

    function _disputed(bool stood) private {
        vm.assertTrue(_dispute(_party(2), _signed(1, 0, "end")));
        game.finish(stood);
    }

    function _as(uint256 party) private {
        _cool();
        vm.prank(_party(party));
        vm.resumeGasMetering();
    }

    function _cool() private {
        vm.cool(address(vault));
        for (uint256 i = 0; i < DESKS; ++i) {
            vm.cool(_desk(i));
        }
    }
}
