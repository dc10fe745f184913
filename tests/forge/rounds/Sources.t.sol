// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BoundInputs} from "../../../contracts/rounds/BoundInputs.sol";
import {Giver, Phase, SourceRule} from "../../../contracts/rounds/PlanTypes.sol";
import {RoundClaim, Source} from "../../../contracts/rounds/RoundTypes.sol";
import {Base} from "../Base.sol";

/// @notice What a rule of one's own claims gives in the round behind: demands and evidence ask for the same.
contract SourcesTest is Base {
    /// @notice `own` with a lag of one, and `part` of part 0: the author's last part of the round before; of another
    /// worker where a joiner inherits.
    function test_own_claims_of_the_round_before() public view {
        for (uint256 i = 0; i < 2; ++i) {
            SourceRule memory rule = _rule(i == 0 ? Giver.Own : Giver.Part, i == 0 ? 1 : 0);
            for (uint32 inherits = 0; inherits < 2; ++inherits) {
                rule.inherits = inherits == 1;
                vm.assertTrue(_gives(rule, 0, address(1), 4, 2));
                vm.assertEq(_gives(rule, 0, address(2), 4, 2), rule.inherits);
                vm.assertFalse(_gives(rule, 0, address(1), 4, 1)); // not its last part
                vm.assertFalse(_gives(rule, 0, address(1), 5, 2)); // of its own round
                vm.assertFalse(_gives(rule, 0, address(1), 3, 2)); // of two rounds before
                vm.assertFalse(_gives(rule, 0, address(1), 6, 2)); // of the round to come
                vm.assertEq(_begins(rule, 5, 0), !rule.inherits);
                vm.assertTrue(_begins(rule, 0, 0));
            }
        }
    }

    /// @notice Behind part 0, `part` is the author's own part before, whoever has joined.
    function test_own_claims_of_the_part_before() public view {
        SourceRule memory rule = _rule(Giver.Part, 0);
        rule.inherits = true;
        vm.assertTrue(_gives(rule, 2, address(1), 5, 1));
        vm.assertFalse(_gives(rule, 2, address(2), 5, 1));
        vm.assertFalse(_gives(rule, 2, address(1), 5, 2));
        vm.assertFalse(_gives(rule, 2, address(1), 4, 1));
        vm.assertFalse(_begins(rule, 0, 1));
        rule.inherits = false;
        vm.assertFalse(_begins(rule, 5, 2));
    }

    function mayGive(
        SourceRule calldata rule,
        RoundClaim calldata claim,
        Source calldata source,
        RoundClaim calldata named,
        Phase calldata phase
    ) external pure returns (bool) {
        return BoundInputs.mayGive(rule, claim, source, named, phase);
    }

    function mayGiveInitial(SourceRule calldata rule, RoundClaim calldata claim, Source calldata source)
        external
        pure
        returns (bool)
    {
        return BoundInputs.mayGiveInitial(rule, claim, source);
    }

    function _rule(Giver giver, uint32 lag) private pure returns (SourceRule memory rule) {
        (rule.phase, rule.giver, rule.lag, rule.initial) = ("phase", giver, lag, 1);
    }

    /// @dev To a claim of worker 1 in round 5; phases have three parts.
    function _gives(SourceRule memory rule, uint32 part, address worker, uint64 round, uint32 namedPart)
        private
        view
        returns (bool)
    {
        RoundClaim memory claim;
        RoundClaim memory named;
        Phase memory phase;
        Source memory source;
        (claim.worker, claim.round, claim.part) = (address(1), 5, part);
        (named.worker, named.round, named.part) = (worker, round, namedPart);
        (phase.name, phase.parts) = ("phase", 3);
        return this.mayGive(rule, claim, source, named, phase);
    }

    function _begins(SourceRule memory rule, uint64 round, uint32 part) private view returns (bool) {
        RoundClaim memory claim;
        Source memory source;
        (claim.round, claim.part) = (round, part);
        return this.mayGiveInitial(rule, claim, source);
    }
}
