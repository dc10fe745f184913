// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Portion, Reordered, Rerun, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {NaiveLog} from "../commitments/NaiveLog.sol";
import {ProfileBase} from "../market/ProfileBase.sol";

/// @notice Gas of the calls about profiles, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without calldata and the 21,000 of a
/// transaction. Two portions of three reruns; what the game itself takes comes on top of a challenge (docs/contracts.md).
contract ProfilesGas is ProfileBase {
    Portion[] private portions;
    Witness private worst;
    Reordered private reordered;
    bytes32 private root;

    function setUp() public override {
        super.setUp();
        (Portion[] memory measured, bytes32 root_,) = _measured();
        for (uint256 k = 0; k < measured.length; ++k) {
            portions.push(measured[k]);
        }
        (worst, reordered, root) = (_witness(WORST), _reordered(WORST % RERUNS), root_);
    }

    function test_profile_post() public {
        id = market.computeTaskId(submitter, 1, _terms());
        _submit();
        _join(verifier);
        (Portion[] memory p, Witness memory w) = (portions, worst);
        _cool();
        vm.prank(verifier);
        profiles.post(id, p, root, [w, w, w], "profile");
    }

    function test_profile_challenge_portion() public {
        Portion[] memory p = portions;
        _cool();
        vm.prank(challenger);
        profiles.challengePortion{value: 1 ether}(id, p, 1, _opening());
    }

    function test_profile_challenge_rerun() public {
        (Portion[] memory p, Witness memory w, Reordered memory r) = (portions, worst, reordered);
        _cool();
        vm.prank(challenger);
        profiles.challengeRerun{value: 1 ether}(id, p, w, r, _opening());
    }

    function test_profile_resolve() public {
        _chargePortion(challenger);
        _cool();
        profileGame.finish(false);
    }

    function test_profile_convict() public {
        Witness memory hidden = _understate();
        Portion[] memory p = portions;
        _cool();
        vm.prank(challenger);
        profiles.convict(id, p, hidden, 2);
    }

    function _cool() private {
        vm.cool(address(profiles));
        vm.cool(address(market));
    }
}
