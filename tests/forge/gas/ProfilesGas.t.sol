// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame, StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {Portion, Reordered, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {Profiles} from "../../../contracts/market/Profiles.sol";
import {ProfileBase} from "../market/ProfileBase.sol";

/// @notice Numbers disputes and does nothing else: what it costs to open one is on record elsewhere.
contract CountingGame is IDisputeGame {
    uint256 private number = 1;

    function start(StartParams calldata, bytes calldata, bytes calldata) external returns (uint256) {
        return ++number;
    }

    function longest(uint32) external pure returns (uint256) {
        return 0;
    }
}

/// @notice Gas of the calls about profiles, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without calldata, the 21,000 of a
/// transaction and the game. Two portions of three reruns.
contract ProfilesGas is ProfileBase {
    modifier metered() {
        vm.pauseGasMetering();
        _;
        vm.pauseGasMetering();
    }

    function test_profile_post() public metered {
        id = market.computeTaskId(submitter, 1, _terms());
        _submit();
        _join(verifier);
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        _begin(verifier);
        profiles.post(id, portions, root, witnesses, "profile");
    }

    function test_profile_challenge_portion() public metered {
        _countingGame();
        Portion[] memory portions = _portions();
        _begin(challenger);
        profiles.challengePortion{value: 1 ether}(id, portions, 1, _opening());
    }

    function test_profile_challenge_rerun() public metered {
        _countingGame();
        (Portion[] memory portions, Witness memory rerun) = (_portions(), _witness(WORST));
        Reordered memory reordered = _reordered(WORST % RERUNS);
        _begin(challenger);
        profiles.challengeRerun{value: 1 ether}(id, portions, rerun, reordered, _opening());
    }

    function test_profile_resolve() public metered {
        uint256 number = _chargePortion(challenger);
        _begin(address(profileGame));
        profiles.onResolved(number, false);
    }

    function test_profile_convict() public metered {
        Witness memory hidden = _understate();
        Portion[] memory portions = _portions();
        _begin(challenger);
        profiles.convict(id, portions, hidden, 2);
    }

    /// @dev The profiles begin anew, with a game that costs next to nothing.
    function _countingGame() private {
        profiles = new Profiles(market, treasury);
        profiles.setGame(address(new CountingGame()));
        _profile();
    }

    function _begin(address caller) private {
        vm.cool(address(profiles));
        vm.cool(address(market));
        vm.prank(caller);
        vm.resumeGasMetering();
    }
}
