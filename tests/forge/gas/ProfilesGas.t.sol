// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Charge, Opening, Portion, Reordered, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {NaiveLog} from "../commitments/NaiveLog.sol";
import {MarketGasBase} from "./MarketGasBase.sol";

/// @notice Gas of the calls about profiles, on record in .ci/gas.json. Two portions of three reruns.
contract ProfilesGas is MarketGasBase {
    function test_profile_post() public metered {
        _submit();
        _seat(verifier);
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        _begin(verifier);
        profiles.post(id, portions, root, witnesses, "profile");
    }

    function test_profile_challenge_portion() public metered {
        _toProfiled();
        _cheapGames();
        (Portion[] memory portions, Opening memory opening) = (_portions(), _opening());
        _announceProfileCharge(challenger, Charge.Portion, 1, 0);
        _begin(challenger);
        profiles.challengePortion(id, portions, 1, opening);
    }

    function test_profile_challenge_rerun() public metered {
        _toProfiled();
        _cheapGames();
        (Portion[] memory portions, Witness memory rerun, Opening memory opening) =
            (_portions(), _witness(WORST), _opening());
        uint256 j = WORST % RERUNS;
        Reordered memory reordered = Reordered(_programs()[j], NaiveLog.inclusionPath(_programs(), j, 0, RERUNS));
        _announceProfileCharge(challenger, Charge.Rerun, rerun.index, 0);
        _begin(challenger);
        profiles.challengeRerun(id, portions, rerun, reordered, opening);
    }

    function test_profile_challenge_distance() public metered {
        _toProfiled();
        _cheapGames();
        (Portion[] memory portions, Witness memory rerun, Opening memory opening) =
            (_portions(), _witness(WORST), _opening());
        _announceProfileCharge(challenger, Charge.Distance, rerun.index, 1);
        _begin(challenger);
        profiles.challengeDistance(id, portions, rerun, 1, opening);
    }

    function test_profile_challenge_reference() public metered {
        _toProfiled();
        _cheapGames();
        (Portion[] memory portions, Opening memory opening) = (_portions(), _opening());
        _announceProfileCharge(challenger, Charge.Reference, 1, 1);
        _begin(challenger);
        profiles.challengeReference(id, portions, 1, 1, opening);
    }

    function test_profile_convict() public metered {
        Witness memory hidden = _understated();
        Portion[] memory portions = _portions();
        _announceConviction(challenger, hidden, 2);
        _begin(challenger);
        profiles.convict(id, portions, hidden, 2);
    }

    function test_profile_announce_conviction() public metered {
        _begin(challenger);
        profiles.announce("digest");
    }

    /// @dev Part of the game's last transaction.
    function test_profile_report_lost() public metered {
        _toProfiled();
        _challengeProfile();
        _begin(address(profileGame));
        profiles.onResolved(1, false);
    }

    function test_profile_settle_stood() public metered {
        _meterSettlement(true);
    }

    function test_profile_settle_lost() public metered {
        _meterSettlement(false);
    }

    function test_profile_conclude() public metered {
        _toProfiled();
        _pass(_terms().profileWindow + 1);
        _begin(verifier);
        profiles.conclude(id);
    }

    function _meterSettlement(bool asserterWon) private {
        _toProfiled();
        _challengeProfile();
        profileGame.report(1, asserterWon);
        _begin(challenger);
        profiles.settleDispute(1);
    }

    /// @dev A posted profile of which rerun 0 demands more than the witness in component 2.
    function _understated() private returns (Witness memory hidden) {
        bytes32[] memory leaves = _leaves();
        hidden.rerun = _rerun(0);
        hidden.rerun.distances[1] = _rerun(WORST).distances[1] + 1;
        leaves[0] = keccak256(abi.encode(hidden.rerun));
        hidden.path = NaiveLog.inclusionPath(leaves, 0, 0, leaves.length);
        Witness memory worst = Witness(WORST, _rerun(WORST), NaiveLog.inclusionPath(leaves, WORST, 0, leaves.length));
        bytes32 root = NaiveLog.root(leaves, 0, leaves.length);
        _submit();
        _seat(verifier);
        vm.prank(verifier);
        profiles.post(id, _portions(), root, [worst, worst, worst], "profile");
    }
}
