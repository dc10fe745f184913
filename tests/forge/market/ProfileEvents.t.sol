// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IProfiles} from "../../../contracts/market/IProfiles.sol";
import {Ledger} from "../../../contracts/market/Ledger.sol";
import {Charge, Portion, Profile, ProfileDispute, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {Vm} from "../Base.sol";
import {ProfileBase} from "./ProfileBase.sol";

/// @notice A bot that lost its disk: rebuilds profiles, their disputes and credits from nothing but events.
contract ProfileReplay {
    mapping(address account => uint256) public credits;
    address public game;
    mapping(bytes32 taskId => Profile) private _profiles;
    mapping(uint256 number => ProfileDispute) private _disputes;

    function profile(bytes32 taskId) external view returns (Profile memory) {
        return _profiles[taskId];
    }

    function dispute(uint256 number) external view returns (ProfileDispute memory) {
        return _disputes[number];
    }

    function replay(Vm.Log calldata log) external {
        bytes32 topic = log.topics[0];
        if (topic == IProfiles.GameSet.selector) {
            game = abi.decode(log.data, (address));
        } else if (topic == Ledger.Withdrawn.selector) {
            credits[_address(log.topics[1])] -= abi.decode(log.data, (uint256));
        } else if (topic == Ledger.Credited.selector) {
            credits[_address(log.topics[2])] += abi.decode(log.data, (uint256));
        } else {
            _apply(log, log.topics[1], _profiles[log.topics[1]]);
        }
    }

    function _apply(Vm.Log calldata log, bytes32 taskId, Profile storage p) private {
        bytes32 topic = log.topics[0];
        if (topic == IProfiles.ProfilePosted.selector) {
            Portion[] memory portions;
            (portions, p.rerunRoot,, p.thresholds,, p.deadline) =
                abi.decode(log.data, (Portion[], bytes32, Witness[3], uint64[3], bytes32, uint64));
            p.portions = keccak256(abi.encode(portions));
            (p.number, p.verifier) = (uint32(uint256(log.topics[2])), _address(log.topics[3]));
        } else if (topic == IProfiles.ProfileChallenged.selector) {
            (uint256 number,,,, uint256 bond) = abi.decode(log.data, (uint256, Charge, uint32, uint8, uint256));
            uint32 about = uint32(uint256(log.topics[2]));
            _disputes[number] = ProfileDispute(taskId, _address(log.topics[3]), about, false, uint128(bond));
            ++p.challenges;
            ++p.open;
        } else if (topic == IProfiles.ProfileDisputeResolved.selector) {
            _disputes[uint256(log.topics[3])].released = true;
            if (abi.decode(log.data, (bool))) --p.open;
        } else if (topic == IProfiles.ProfileDisputeMoot.selector) {
            _disputes[uint256(log.topics[3])].released = true;
        } else if (topic == IProfiles.ProfileGone.selector) {
            delete _profiles[taskId];
            p.number = uint32(uint256(log.topics[2]));
        }
    }

    function _address(bytes32 topic) private pure returns (address) {
        return address(uint160(uint256(topic)));
    }
}

/// @notice The chain is the database: after every stage, events alone give the state that the views give.
contract ProfileEventsTest is ProfileBase {
    ProfileReplay private bot;

    function setUp() public override {
        vm.recordLogs();
        super.setUp();
        bot = new ProfileReplay();
        _expectRebuilt();
        vm.assertEq(bot.game(), address(profileGame));
    }

    function test_to_a_void_profile_and_the_next_one() public {
        _chargePortion(challenger);
        _expectRebuilt();
        _chargePortion(solver);
        _chargePortion(nextVerifier);
        profileGame.report(1, true);
        _expectRebuilt();
        profileGame.report(2, false);
        _expectRebuilt();
        profiles.releaseBond(3);
        _expectRebuilt();
        _join(nextVerifier);
        _profile(nextVerifier);
        _expectRebuilt();
        vm.prank(solver);
        profiles.withdraw();
        _expectRebuilt();
        _pass(10 minutes + 1);
        vm.prank(nextVerifier);
        market.leaveAsVerifier(id);
        _expectRebuilt();
    }

    function test_to_a_conviction() public {
        Witness memory hidden = _understate();
        vm.prank(challenger);
        profiles.convict(id, _portions(), hidden, 2);
        _expectRebuilt();
    }

    function _expectRebuilt() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter == address(profiles)) bot.replay(logs[i]);
        }
        vm.assertEq(keccak256(abi.encode(bot.profile(id))), keccak256(abi.encode(profiles.profile(id))));
        for (uint256 number = 0; number <= profileGame.disputes(); ++number) {
            vm.assertEq(keccak256(abi.encode(bot.dispute(number))), keccak256(abi.encode(profiles.dispute(number))));
        }
        address[6] memory parties = [submitter, solver, verifier, nextVerifier, challenger, treasury];
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.assertEq(bot.credits(parties[i]), profiles.credits(parties[i]));
        }
    }
}
