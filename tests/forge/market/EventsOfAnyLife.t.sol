// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame} from "../../../contracts/dispute/IDisputeGame.sol";
import {Base, Vm} from "../Base.sol";
import {Announcements, EventReplay, IChallenges, ICounterclaims, IDataDemands, IObjections} from "./EventReplay.sol";
import {IProfiles, IProofRegistry, ISeats, ISettlement, ITaskRegistry, IVerdicts} from "./EventReplay.sol";
import {ObjectionHandler} from "./ObjectionHandler.sol";
import {Challenges, Counterclaims, DataDemands, Objections, Profiles, StakeVault} from "./MarketDeployment.sol";
import {ToyGame} from "./MarketDeployment.sol";

/// @notice The chain is the database, whatever tasks live through: after every drawn action, events alone give the
/// state of all desks.
contract EventsOfAnyLifeTest is Base {
    uint256 private constant ACTIONS = 300;

    ObjectionHandler private handler;
    EventReplay private bot;
    StakeVault private vault;
    Challenges private challenges;
    DataDemands private demands;
    Profiles private profiles;
    Objections private objections;
    Counterclaims private counterclaims;
    address[8] private parties;
    bytes32[] private demanded;
    bytes32[] private announced;
    address[] private announcers;
    mapping(bytes32 topic => uint256) private seen;

    function setUp() public {
        vm.recordLogs();
        handler = new ObjectionHandler();
        bot = new EventReplay();
        (address houseOfAll,,, address ofDisputes, address ofDemands) = handler.houses();
        vault = StakeVault(houseOfAll);
        challenges = Challenges(ofDisputes);
        demands = DataDemands(ofDemands);
        profiles = Profiles(address(challenges.profiles()));
        objections = Objections(address(challenges.objections()));
        counterclaims = Counterclaims(address(challenges.counterclaims()));
        parties = handler.parties();
        delete demanded;
        delete announced;
        delete announcers;
        this.expectRebuilt();
    }

    /// forge-config: default.fuzz.runs = 3
    /// forge-config: coverage.fuzz.runs = 3
    /// forge-config: long.fuzz.runs = 64
    function testFuzz_events_rebuild_all_state(uint256 seed) public {
        _live(seed);
    }

    /// @dev Fixed lives, to know that the property is about every event that carries state. Seldom does one of them
    /// live through all: if a change of the desks shifts what is drawn, other seeds do.
    function test_lives_emit_every_event_that_the_handler_can_bring_about() public {
        vm.pauseGasMetering();
        for (uint256 seed = 0; seed < 5; ++seed) {
            setUp();
            _live(seed);
        }
        bytes32[41] memory topics = [
            ITaskRegistry.TaskSubmitted.selector,
            ITaskRegistry.Advanced.selector,
            ITaskRegistry.Seated.selector,
            ITaskRegistry.Awarded.selector,
            ITaskRegistry.SolverGone.selector,
            ITaskRegistry.TaskClosed.selector,
            ISeats.SeatOpened.selector,
            ISeats.ClaimsOpened.selector,
            ISeats.SeatClaimed.selector,
            ISeats.SeatTaken.selector,
            ISeats.SeatLeft.selector,
            IProofRegistry.ProgressPosted.selector,
            IProofRegistry.ProofCommitted.selector,
            IVerdicts.ClaimPosted.selector,
            IVerdicts.VerdictPosted.selector,
            IVerdicts.WatchFixed.selector,
            IVerdicts.WatchOpened.selector,
            IVerdicts.Disclosed.selector,
            IVerdicts.DutyBroken.selector,
            IChallenges.Challenged.selector,
            IChallenges.DisputeSettled.selector,
            IChallenges.DisputeMoot.selector,
            ISettlement.Unserved.selector,
            ISettlement.WordEnded.selector,
            IDataDemands.Demanded.selector,
            IDataDemands.Answered.selector,
            IDataDemands.Expired.selector,
            IProfiles.ProfilePosted.selector,
            IProfiles.ProfileChallenged.selector,
            IProfiles.ProfileDisputeSettled.selector,
            IProfiles.ProfileConcluded.selector,
            IProfiles.ProfileGone.selector,
            Announcements.Announced.selector,
            IObjections.Objected.selector,
            IObjections.ObjectionSettled.selector,
            IObjections.ObjectionMoot.selector,
            ICounterclaims.Counterclaimed.selector,
            ICounterclaims.Contested.selector,
            ICounterclaims.ContestSettled.selector,
            ICounterclaims.ContestMoot.selector,
            ICounterclaims.CounterclaimConcluded.selector
        ];
        for (uint256 i = 0; i < topics.length; ++i) {
            vm.assertTrue(seen[topics[i]] > 0, vm.toString(i));
        }
    }

    /// @notice Replays what is new and compares. Called from outside, so that its memory is free again.
    function expectRebuilt() external {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        if (logs.length == 0) return;
        for (uint256 i = 0; i < logs.length; ++i) {
            if (_isReverted(logs[i])) ++i;
            else _replay(logs[i]);
        }
        bytes32[] memory ids = handler.ids();
        for (uint256 i = 0; i < ids.length; ++i) {
            vm.assertEq(bot.known(ids[i]), _stored(ids[i]));
            vm.assertEq(
                keccak256(abi.encode(bot.terms(ids[i]))), keccak256(abi.encode(challenges.registry().terms(ids[i])))
            );
        }
        _expectDisputes();
        for (uint256 i = 0; i < demanded.length; ++i) {
            vm.assertEq(bot.isOpen(demanded[i]), demands.isOpen(demanded[i]));
        }
        for (uint256 i = 0; i < announced.length; ++i) {
            uint256 number = Announcements(announcers[i]).announcedAt(announced[i]);
            vm.assertEq(bot.announcedAt(announcers[i], announced[i]), number);
        }
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.assertEq(bot.free(parties[i]), vault.free(parties[i]));
        }
    }

    /// @dev Most moves take a task further.
    function _live(uint256 seed) private {
        for (uint256 i = 0; i < ACTIONS; ++i) {
            uint256 dice = uint256(keccak256(abi.encode(seed, i)));
            (uint256 a, uint256 b, uint256 c) = (dice >> 8, dice >> 16, dice >> 24);
            if (dice % 24 == 0) handler.submit(a);
            else if (dice % 24 == 1) handler.intrude(a, b, c);
            else if (dice % 24 == 2) handler.ask(a, b, c);
            else if (dice % 24 == 3) handler.show(a, b);
            else if (dice % 24 == 4) handler.resolve(a, b);
            else if (dice % 24 == 5) handler.settle(a);
            else if (dice % 24 == 6) handler.hear(a, b);
            else if (dice % 24 == 7) handler.withdraw(a, b);
            else if (dice % 24 == 8) handler.pass(a);
            else if (dice % 24 == 9) handler.object(a, b, c);
            else if (dice % 24 == 12) handler.contest(a, b);
            else if (dice % 24 == 13) handler.rule(a, b);
            else if (dice % 24 == 10) handler.decide(a, b);
            else if (dice % 72 == 60) handler.conclude(a);
            else handler.advance(a, b);
            this.expectRebuilt();
        }
    }

    /// @dev Actions let time pass before they act, so what is the block's time is the time of all that they emit.
    function _replay(Vm.Log memory log) private {
        if (log.emitter == address(challenges.game())) return bot.ended(uint256(log.topics[1]), _won(log));
        if (log.emitter == address(profiles.game())) return bot.endedProfile(uint256(log.topics[1]), _won(log));
        if (log.emitter == address(objections.game())) return bot.endedObjection(uint256(log.topics[1]), _won(log));
        if (log.emitter == address(counterclaims.game())) return bot.endedContest(uint256(log.topics[1]), _won(log));
        if (log.emitter != address(vault) && !vault.isDesk(log.emitter)) return;
        bot.replay(log);
        ++seen[log.topics[0]];
        if (log.topics[0] == IDataDemands.Demanded.selector) {
            demanded.push(log.topics[2]);
        } else if (log.topics[0] == Announcements.Announced.selector) {
            announced.push(log.topics[1]);
            announcers.push(log.emitter);
        }
    }

    /// @dev forge records what reverted calls emit, too. The handler tries to expire demands that it may not: then a
    /// demand that has expired is open, and the vault's next event, of the bond, didn't happen either.
    function _isReverted(Vm.Log memory log) private view returns (bool) {
        return log.topics[0] == IDataDemands.Expired.selector && demands.isOpen(log.topics[2]);
    }

    function _stored(bytes32 taskId) private view returns (bytes memory) {
        return abi.encode(
            challenges.registry().task(taskId),
            challenges.seats().seating(taskId),
            challenges.proofs().proof(taskId),
            challenges.verdicts().verdict(taskId),
            challenges.contested(taskId),
            profiles.profile(taskId),
            demands.waiting(taskId),
            objections.objected(taskId),
            challenges.settlement().unservedBy(taskId)
        );
    }

    function _expectDisputes() private view {
        IDisputeGame[4] memory games = [challenges.game(), profiles.game(), objections.game(), counterclaims.game()];
        uint256 last = counterclaims.last();
        for (uint256 i = 0; i < games.length; ++i) {
            uint256 count = ToyGame(address(games[i])).disputes();
            if (count > last) last = count;
        }
        for (uint256 number = 0; number <= last; ++number) {
            bytes memory stored = abi.encode(
                challenges.dispute(number),
                profiles.dispute(number),
                objections.objection(number),
                counterclaims.counterclaimed(number),
                counterclaims.contests(number)
            );
            vm.assertEq(bot.disputed(number), stored);
        }
    }

    function _won(Vm.Log memory log) private pure returns (bool asserterWon) {
        (asserterWon,) = abi.decode(log.data, (bool, uint8));
    }
}
