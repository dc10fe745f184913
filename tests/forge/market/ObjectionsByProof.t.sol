// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IObjections, Segment} from "../../../contracts/market/IObjections.sol";
import {Split} from "../../../contracts/market/Split.sol";
import {Base, Claim, Ending, IProvenSteps, LogProof, MarketBase, MarketDeployment, Terms} from "./MarketBase.sol";
import {VectorHash} from "./MarketBase.sol";
import {DataDemandsBase, ObjectionBase} from "./ObjectionBase.sol";
import {ProvenBase} from "./ProvenBase.sol";

/// @notice A proof ends a dispute about an objection as the game would.
contract ObjectionsByProofTest is ProvenBase, ObjectionBase {
    /// @dev The entry of the log that is no state of the training; 0 if all are.
    uint256 private _wrong;

    function test_a_proof_lets_a_true_segment_stand() public {
        (uint256 number, Segment memory segment) = _objected(2);
        vm.expectEmit(address(objections));
        emit IObjections.ObjectionProven(id, registry.task(id).began, number, true);
        objections.settleByProof(number, segment, segment.end);
        _expectEnding(number, Ending.Stood);
        // Whatever the game says later.
        objectionGame.report(number, false);
        _expectEnding(number, Ending.Stood);
        uint256 bond = vault.locked(address(objections), id, challenger);
        objections.settleDispute(number);
        vm.assertEq(_gain(challenger), -int256(bond));
        vm.assertTrue(!objections.objected(id).fell);
    }

    function test_a_proof_lets_a_false_segment_fall() public {
        _wrong = 3;
        setUp();
        (uint256 number, Segment memory segment) = _objected(2);
        objections.settleByProof(number, segment, _state(INTERVAL * 3));
        _expectEnding(number, Ending.Fell);
        objections.settleDispute(number);
        vm.assertTrue(objections.objected(id).fell);
        vm.assertGt(uint256(_gain(challenger)), 0);
        // Other objections are moot, and no proof decides them any more.
        bytes32 shown = _state(INTERVAL * 3);
        vm.expectRevert(abi.encodeWithSelector(IObjections.NothingToSettle.selector, number));
        objections.settleByProof(number, segment, shown);
    }

    function test_only_the_segment_of_the_objection_and_what_is_proven() public {
        (uint256 number, Segment memory segment) = _objected(2);
        Segment memory other = _segment(1);
        vm.expectRevert(abi.encodeWithSelector(IObjections.OtherSegment.selector, uint32(2)));
        objections.settleByProof(number, other, log[2]);
        vm.expectRevert(abi.encodeWithSelector(IProvenSteps.NotProven.selector, id, uint32(2)));
        objections.settleByProof(number, segment, "another");
        segment.end = "another";
        vm.expectRevert();
        objections.settleByProof(number, segment, log[3]);
        vm.expectRevert(abi.encodeWithSelector(IObjections.UnknownDispute.selector, number + 1));
        objections.settleByProof(number + 1, other, log[3]);
    }

    /// @dev An open objection to a segment whose steps are all proven.
    function _objected(uint32 index) private returns (uint256 number, Segment memory segment) {
        _pinned(true);
        _toExactlyCommitted();
        segment = _segment(index);
        number = _object(challenger, index);
        _prove(index);
        _tie(INTERVAL * index);
        _tie(INTERVAL * (index + 1));
    }

    function _expectEnding(uint256 number, Ending ending) private view {
        vm.assertTrue(objections.objection(number).ending == ending);
    }

    function _terms() internal view override(MarketBase, ObjectionBase) returns (Terms memory) {
        return ObjectionBase._terms();
    }

    function _claims(bool accepts)
        internal
        view
        override(ProvenBase, ObjectionBase)
        returns (Claim[] memory, LogProof[] memory)
    {
        return super._claims(accepts);
    }

    function _entryAt(uint256 index) internal view override(ProvenBase, DataDemandsBase) returns (bytes32) {
        return index > 0 && index == _wrong ? keccak256("no state") : ProvenBase._entryAt(index);
    }

    function _hasher() internal override(MarketDeployment, ProvenBase) returns (VectorHash) {
        return ProvenBase._hasher();
    }

    function _program() internal pure override(MarketBase, DataDemandsBase) returns (bytes32) {
        return DataDemandsBase._program();
    }
}

/// @notice Bonds and rewards of objections are what `pol.incentives.payouts` computes.
contract ObjectionVectorsTest is Base {
    string private _json;

    function test_amounts() public {
        _json = vm.readFile("fixtures/vectors/objections.json");
        uint256[] memory stakes = _column("stake");
        uint256[] memory bonds = _column("bond");
        uint256[] memory rewards = _column("reward");
        uint256[] memory defenses = _defenses();
        uint256[] memory left = _left(stakes);
        uint256[] memory earlier = _column("earlier");
        uint256[] memory taxes = _column("tax");
        vm.assertGt(stakes.length, 0);
        for (uint256 i = 0; i < stakes.length; ++i) {
            vm.assertEq(Split.objectionBond(2 * defenses[i], left[i], earlier[i]), bonds[i]);
            vm.assertEq(Split.objectorReward(left[i], bonds[i], taxes[i]), rewards[i]);
        }
    }

    function _defenses() private view returns (uint256[] memory defenses) {
        uint256[] memory prices = _column("price");
        uint256[] memory segments = _column("segments");
        uint256[] memory fees = _column("fee");
        uint256[] memory draws = _column("draws");
        uint256[] memory expected = _column("segment");
        defenses = _column("extra");
        for (uint256 i = 0; i < prices.length; ++i) {
            uint256 segment =
                Split.segmentPrice(uint128(prices[i]), uint64(segments[i]), uint128(fees[i]), uint32(draws[i]));
            vm.assertEq(segment, expected[i]);
            defenses[i] += segment;
        }
    }

    function _left(uint256[] memory stakes) private view returns (uint256[] memory left) {
        uint256[] memory fees = _column("fee");
        uint256[] memory looks = _column("looks");
        uint256[] memory draws = _column("draws");
        left = _column("left");
        for (uint256 i = 0; i < left.length; ++i) {
            uint256 rest = Split.slashable(uint128(stakes[i]), uint128(fees[i]), uint32(looks[i]), uint32(draws[i]));
            vm.assertEq(rest, left[i]);
        }
    }

    function _column(string memory name) private view returns (uint256[] memory) {
        return vm.parseJsonUintArray(_json, string.concat(".", name));
    }
}
