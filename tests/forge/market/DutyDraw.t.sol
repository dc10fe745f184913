// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {PrevrandaoBeacon} from "../../../contracts/market/PrevrandaoBeacon.sol";
import {Base, Disclosure, ForcedErrors, IBeacon, IVerdicts, MarketBase, Seating} from "./MarketBase.sol";

/// @notice No party has a say in whether a verdict has to be wrong: all that it chose was chosen before the seed could
/// be known.
contract DutyDrawTest is MarketBase {
    /// @dev Everything that the draw reads, but for the seed.
    function _inputs() private view returns (bytes32) {
        Seating memory s = seats.seating(id);
        return keccak256(abi.encode(id, s.number, s.commitment, s.dutyRound, verdicts.rate()));
    }

    /// @dev Whoever closes the claims, and whenever: the round has no seed, and no round before it that somebody could
    /// still record counts.
    function testFuzz_whoever_decides_when_gets_a_round_that_nobody_knows(uint256 who, uint256 late) public {
        _toCommitted();
        _give(proofs.proof(id).round, "draw");
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
        vm.prank(verifier);
        seats.claim(id, 0, ForcedErrors.commitment(verifier, id, secret));
        address[4] memory parties = [submitter, solver, verifier, challenger];
        _pass(_terms().seatWindow + 1 + bound(late, 0, 365 days));
        toyBeacon.give(toyBeacon.nextRound(), "one that came in the meantime");
        vm.prank(parties[bound(who, 0, 3)]);
        seats.decide(id);
        uint64 round = seats.seating(id).dutyRound;
        vm.assertFalse(toyBeacon.recorded(round));
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotReached.selector, round));
        toyBeacon.record(round);
        vm.assertEq(seats.dutySeed(id), 0);
    }

    /// @dev Calls that exist at this stage, by every party: refused, or without an effect on what the draw reads.
    function test_after_the_seat_is_taken_no_call_of_any_party_changes_what_is_drawn_from() public {
        _toCommitted();
        _give(proofs.proof(id).round, "draw");
        _seat(verifier, ForcedErrors.commitment(verifier, id, secret));
        bytes32 inputs = _inputs();
        address[6] memory parties = [submitter, solver, verifier, nextVerifier, challenger, watcher];
        for (uint256 stage = 0; stage < 2; ++stage) {
            for (uint256 i = 0; i < parties.length; ++i) {
                bytes[] memory calls = _calls(parties[i]);
                for (uint256 c = 0; c < calls.length; ++c) {
                    (address to, bytes memory data) = abi.decode(calls[c], (address, bytes));
                    vm.prank(parties[i]);
                    (bool done,) = to.call(data);
                    vm.assertFalse(done && to == address(seats), "a seat that is taken was changed");
                    vm.assertEq(_inputs(), inputs);
                }
            }
            // And the same again when the seed is known.
            _give(seats.seating(id).dutyRound, "duty");
        }
    }

    /// @dev Every function of the seats, other tasks of the submitter, progress and proof of the solver, other secrets
    /// of the verifier.
    function _calls(address party) private view returns (bytes[] memory calls) {
        calls = new bytes[](9);
        calls[0] = abi.encode(seats, abi.encodeCall(seats.claim, (id, 0, ForcedErrors.commitment(party, id, "other"))));
        calls[1] = abi.encode(seats, abi.encodeCall(seats.decide, (id)));
        calls[2] = abi.encode(seats, abi.encodeCall(seats.openClaims, (id)));
        calls[3] = abi.encode(seats, abi.encodeCall(seats.replaceRound, (id)));
        calls[4] = abi.encode(seats, abi.encodeCall(seats.open, (id, true)));
        calls[5] = abi.encode(seats, abi.encodeCall(seats.release, (id)));
        calls[6] = abi.encode(registry, abi.encodeCall(registry.submit, (_terms())));
        uint64 size = uint64(log.length);
        (bytes32 root, bytes32[] memory path) = (_root(size), new bytes32[](0));
        calls[7] = abi.encode(proofs, abi.encodeCall(proofs.commit, (id, size, root, path, "other", path)));
        calls[8] = abi.encode(sortition, abi.encodeCall(sortition.enrol, (1)));
    }

    /// @dev Only the secret that was committed to opens a verdict, and it is drawn with: another one would draw
    /// otherwise.
    function test_a_verifier_has_one_secret() public {
        _toWatched(true, false);
        (bytes32 seed, uint32 number) = (seats.dutySeed(id), registry.task(id).seating);
        Disclosure memory other;
        while (!ForcedErrors.isForced(RATE, seed, id, number, other.secret)) {
            other.secret = keccak256(abi.encode(other.secret));
        }
        vm.warp(verdicts.verdict(id).watchUntil + 1);
        _expectRefusal(verifier, IVerdicts.WrongSecret.selector);
        verdicts.disclose(id, other);
        _disclose(verifier, true);
    }

    /// @dev A submitter chooses its task's id, and a verifier its secret, among as many as it likes. The seed comes
    /// after: the best of 16 choices under the seeds that were imaginable is forced as often as any.
    function test_a_choice_before_the_seed_is_worth_nothing() public view {
        uint256 draws = 4_000;
        uint256 forced = 0;
        for (uint256 i = 0; i < draws; ++i) {
            bytes32 chosen = this.luckiest(i);
            bytes32 seed = keccak256(abi.encode("the seed that comes", i));
            if (ForcedErrors.isForced(RATE, seed, chosen, 1, chosen)) ++forced;
        }
        // 1/4, with three standard errors.
        vm.assertTrue(forced > 917 && forced < 1_083);
    }

    /// @dev The one of 16 that would be forced under the fewest of 8 guesses of the seed. External: its memory is given
    /// back.
    function luckiest(uint256 number) external pure returns (bytes32 chosen) {
        uint256 fewest = 9;
        for (uint256 choice = 0; choice < 16 && fewest > 0; ++choice) {
            bytes32 candidate = keccak256(abi.encode(number, choice));
            uint256 hits = 0;
            for (uint256 guess = 0; guess < 8; ++guess) {
                if (ForcedErrors.isForced(RATE, bytes32(guess), candidate, 1, candidate)) ++hits;
            }
            if (hits < fewest) (fewest, chosen) = (hits, candidate);
        }
    }
}

/// @notice The same draw on a chain whose proposers give the seed: what skipping one slot is worth.
contract OneBitOfTheBeaconTest is Base {
    PrevrandaoBeacon private _shown = new PrevrandaoBeacon();
    PrevrandaoBeacon private _skipped = new PrevrandaoBeacon();

    /// @dev Who proposes the block of a round sees its seed, and leaves the round to the next block if it likes.
    function test_a_proposer_has_one_bit() public {
        uint256 draws = 4_000;
        uint256[3] memory forced;
        for (uint256 i = 0; i < draws; ++i) {
            uint64 round = _shown.nextRound();
            bool first = _drawn(_shown, round, round, "shown");
            bool second = _drawn(_skipped, round, round + 1, "skipped");
            if (first) ++forced[0];
            if (first && second) ++forced[1];
            if (first || second) ++forced[2];
        }
        // 1/4, 1/16 and 7/16, each with three standard errors: docs/spec/game.md, "One bit of the beacon".
        vm.assertTrue(forced[0] > 917 && forced[0] < 1_083);
        vm.assertTrue(forced[1] > 204 && forced[1] < 296);
        vm.assertTrue(forced[2] > 1_655 && forced[2] < 1_845);
    }

    /// @dev Whether an error is forced if the round is recorded in this block.
    function _drawn(PrevrandaoBeacon beacon, uint64 round, uint64 number, string memory mix) private returns (bool) {
        vm.roll(number);
        vm.prevrandao(uint256(keccak256(abi.encode(mix, round))));
        beacon.record(round);
        return ForcedErrors.isForced(1 << 30, beacon.seed(round), "task", 1, "secret");
    }
}
