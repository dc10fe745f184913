// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Vm} from "../Base.sol";
import {EventReplay} from "./EventReplay.sol";
import {ObjectionBase} from "./ObjectionBase.sol";

/// @notice Events alone give what is known of objections, too.
contract ObjectionEventsTest is ObjectionBase {
    EventReplay private bot;

    function setUp() public override {
        vm.recordLogs();
        super.setUp();
        bot = new EventReplay();
    }

    function test_objections_that_stand_fall_and_are_moot() public {
        _toExactlyRebuilt();
        _seatVerifier(verifier, false);
        uint32 free = _one(false);
        _object(challenger, free);
        _object(watcher, free);
        _object(donor, free);
        _expectRebuilt();
        objectionGame.report(1, true);
        objectionGame.report(2, false);
        objectionGame.report(3, false);
        _expectRebuilt();
        for (uint256 number = 1; number <= 3; ++number) {
            objections.settleDispute(number);
            _expectRebuilt();
        }
        _verdict(verifier, true);
        _expectRebuilt();
        _openWatch();
        _disclose(verifier, true);
        _settle();
        _expectRebuilt();
    }

    function test_a_zero_root_and_the_next_solver() public {
        log[2] = 0;
        _toExactlyRebuilt();
        objections.announce(keccak256(abi.encode(challenger, id, keccak256(abi.encode(uint64(2))))));
        vm.roll(vm.getBlockNumber() + 1);
        bytes32[] memory path = _inclusion(2);
        vm.prank(challenger);
        objections.objectToZero(id, 2, path);
        _expectRebuilt();
        _withhold(_demand(watcher));
        _expectRebuilt();
        _award();
        _expectRebuilt();
        _commit();
        _expectRebuilt();
        _object(challenger, 0);
        _expectRebuilt();
    }

    function _toExactlyRebuilt() private {
        _submit();
        _award();
        _expectRebuilt();
        _commit();
        _expectRebuilt();
    }

    function _expectRebuilt() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter == address(objectionGame)) {
                (bool asserterWon,) = abi.decode(logs[i].data, (bool, uint8));
                bot.endedObjection(uint256(logs[i].topics[1]), asserterWon);
            }
            if (vault.isDesk(logs[i].emitter) || logs[i].emitter == address(vault)) bot.replay(logs[i]);
        }
        bytes memory stored = abi.encode(
            registry.task(id),
            seats.seating(id),
            proofs.proof(id),
            verdicts.verdict(id),
            challenges.contested(id),
            profiles.profile(id),
            demands.waiting(id),
            objections.objected(id)
        );
        vm.assertEq(bot.known(id), stored);
        for (uint256 number = 0; number <= objectionGame.disputes(); ++number) {
            vm.assertEq(abi.encode(bot.objection(number)), abi.encode(objections.objection(number)));
        }
        address[7] memory parties = [submitter, solver, verifier, challenger, watcher, donor, treasury];
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.assertEq(bot.free(parties[i]), vault.free(parties[i]));
        }
    }
}
