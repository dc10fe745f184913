// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC2771Forwarder} from "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol";
import {Desk} from "../../../contracts/incentives/Desk.sol";
import {Forwarder} from "../../../contracts/incentives/Forwarder.sol";
import {IJackpot} from "../../../contracts/incentives/IJackpot.sol";
import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {Announcements} from "../../../contracts/market/Announcements.sol";
import {ClaimCharge, IChallenges} from "../../../contracts/market/IChallenges.sol";
import {DataDemand, IDataDemands} from "../../../contracts/market/IDataDemands.sol";
import {IProofRegistry} from "../../../contracts/market/IProofRegistry.sol";
import {ISeats} from "../../../contracts/market/ISeats.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {IVerdicts, Look} from "../../../contracts/market/IVerdicts.sol";
import {IProfiles} from "../../../contracts/market/IProfiles.sol";
import {Charge, Opening, Portion, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {Claim, LogProof, Outcome, Status} from "../../../contracts/market/TaskTypes.sol";
import {Relaying} from "../incentives/Relaying.sol";
import {DataDemandsBase} from "./DataDemandsBase.sol";

/// @notice Verbs of parties, signed by the party and relayed by somebody else: roles, money and events are the
/// signer's. Mallory is nobody.
contract RelayedTest is DataDemandsBase, Relaying {
    uint256 private constant SUBMITTER = 0x50b;
    uint256 private constant SOLVER = 0x501;
    uint256 private constant VERIFIER = 0x5e2;
    uint256 private constant CHALLENGER = 0xc4a;
    uint256 private constant WATCHER = 0x3a7;

    Forwarder private forwarder;
    address private mallory = account("mallory");

    function setUp() public override {
        (submitter, solver, verifier) = (vm.addr(SUBMITTER), vm.addr(SOLVER), vm.addr(VERIFIER));
        (challenger, watcher) = (vm.addr(CHALLENGER), vm.addr(WATCHER));
        super.setUp();
        // All desks trust the vault's forwarder. In this market it is the address zero, from which nobody but a test
        // can call.
        forwarder = Forwarder(vault.trustedForwarder());
        vm.etch(address(forwarder), address(new Forwarder()).code);
    }

    function test_every_desk_trusts_the_forwarder_of_the_vault() public view {
        address[10] memory desks = [
            address(registry),
            address(seats),
            address(proofs),
            address(profiles),
            address(verdicts),
            address(challenges),
            address(demands),
            address(settlement),
            address(jackpot),
            address(sortition)
        ];
        for (uint256 i = 0; i < desks.length; ++i) {
            vm.assertEq(Desk(desks[i]).trustedForwarder(), address(forwarder));
        }
    }

    function test_a_task_is_submitted_and_cancelled() public {
        uint256 escrow = settlement.escrowOf(_terms());
        uint256 before = vault.free(submitter);
        _relayed(SUBMITTER, address(registry), abi.encodeCall(ITaskRegistry.submit, (_terms())), _short(escrow));
        vm.assertEq(registry.task(id).submitter, submitter);
        vm.assertEq(registry.nonces(submitter), 1);
        vm.assertEq(registry.nonces(donor), 0);
        _expectLocked(address(settlement), submitter, before, escrow);
        _relayed(SUBMITTER, address(registry), abi.encodeCall(ITaskRegistry.cancel, (id)), _notAllowed(mallory));
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Cancelled));
        _expectLocked(address(settlement), submitter, before, 0);
    }

    function test_a_seat_is_claimed() public {
        _submit();
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
        uint256 before = vault.free(verifier);
        _relay(donor, _signed(VERIFIER, address(seats), abi.encodeCall(ISeats.claim, (id, 0, bytes32(0)))));
        vm.assertEq(seats.seating(id).best, verifier);
        _expectLocked(address(seats), verifier, before, _terms().verifierStake);
    }

    function test_a_profile_is_posted() public {
        _submit();
        _seat(verifier);
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        bytes memory data = abi.encodeCall(IProfiles.post, (id, portions, root, witnesses, "profile"));
        _relayed(VERIFIER, address(profiles), data, _notAllowed(mallory));
        vm.assertEq(profiles.profile(id).verifier, verifier);
    }

    /// @dev The profiler may relay what it may not sign.
    function test_a_profile_is_challenged() public {
        _toProfiled();
        uint256 bond = profiles.bondOf(id);
        uint256 before = vault.free(challenger);
        Opening memory opening = Opening(HEADER, PAYLOAD, type(uint128).max);
        bytes memory data = abi.encodeCall(IProfiles.challengePortion, (id, _portions(), 0, opening));
        _announceProfileCharge(challenger, Charge.Portion, 0, 0);
        _announceProfileCharge(mallory, Charge.Portion, 0, 0);
        _expectRefusedRelayed(address(profiles), data, VERIFIER, _notAllowed(verifier));
        _relayedBy(verifier, CHALLENGER, address(profiles), data, _short(bond));
        vm.assertEq(profiles.dispute(1).challenger, challenger);
        vm.assertEq(profileGame.started().challenger, challenger);
        vm.assertEq(profileGame.started().asserter, verifier);
        _expectLocked(address(profiles), challenger, before, bond);
    }

    function test_progress_is_posted_and_a_proof_committed() public {
        _toTraining();
        bytes memory data = abi.encodeCall(IProofRegistry.post, (id, 3, _root(3), _consistency(3)));
        _expectRefusedRelayed(address(proofs), data, SUBMITTER, _notAllowed(submitter));
        _relayedBy(submitter, SOLVER, address(proofs), data, _notAllowed(mallory));
        vm.assertEq(proofs.proof(id).root, _root(3));
        data = abi.encodeCall(IProofRegistry.commit, (id, 5, _root(5), _consistency(5), "proof", _inclusion(0)));
        _relayedBy(submitter, SOLVER, address(proofs), data, _notAllowed(mallory));
        _expectStatus(Status.Committed);
    }

    function test_a_verdict_is_posted() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        bytes memory data = abi.encodeCall(IVerdicts.post, (id, claims, logProofs, new Look[](0), "sealed"));
        _expectRefusedRelayed(address(verdicts), data, SOLVER, _notAllowed(solver));
        _relayedBy(solver, VERIFIER, address(verdicts), data, _notAllowed(mallory));
        vm.assertEq(verdicts.verdict(id).verifier, verifier);
        _expectStatus(Status.Watched);
    }

    /// @dev Whoever relays a report gets nothing of the stake, though it has seen the secret.
    function test_a_leak_is_reported() public {
        _toVerifying(false);
        _announceLeak(challenger, secret);
        bytes memory data = abi.encodeCall(IVerdicts.reportLeak, (id, secret));
        bytes32 missing = keccak256(abi.encode(mallory, id, keccak256(abi.encode(secret))));
        uint256 before = vault.free(challenger);
        _relayed(
            CHALLENGER, address(verdicts), data, abi.encodeWithSelector(Announcements.NotAnnounced.selector, missing)
        );
        vm.assertEq(vault.free(challenger) - before, _terms().verifierStake / 2);
        vm.assertEq(vault.free(mallory), 0);
    }

    /// @dev The verifier may relay what it may not sign.
    function test_a_verdict_is_challenged() public {
        _toContested(true);
        (Claim[] memory claims,) = _claims(true);
        ClaimCharge memory charge;
        (charge.claim, charge.entries, charge.kind) = (claims[0], _entries(true, false), 1);
        Opening memory opening = Opening(HEADER, PAYLOAD, type(uint128).max);
        bytes memory data = abi.encodeCall(IChallenges.challenge, (id, charge, opening));
        _announceCharge(challenger, charge);
        _announceCharge(mallory, charge);
        uint256 bond = challenges.bondOf(id);
        uint256 before = vault.free(challenger);
        _expectRefusedRelayed(address(challenges), data, VERIFIER, _notAllowed(verifier));
        _relayedBy(verifier, CHALLENGER, address(challenges), data, _short(bond));
        vm.assertEq(challenges.dispute(1).challenger, challenger);
        vm.assertEq(game.started().challenger, challenger);
        vm.assertEq(game.started().asserter, verifier);
        _expectLocked(address(challenges), challenger, before, bond);
    }

    /// @dev A demand by who sits gives it time, and the half of the window that is the solver's own is so if somebody
    /// relays for it.
    function test_a_leaf_is_demanded_and_answered() public {
        _toVerifying(false);
        (uint64 began, uint64 deadline, uint256 bond) =
            (registry.task(id).began, registry.task(id).deadline, demands.bondOf());
        uint64 until = uint64(vm.getBlockTimestamp()) + WINDOW;
        DataDemand memory d = DataDemand(id, began, 1, 0, 1, verifier, until, bond);
        uint256 before = vault.free(verifier);
        _relayed(VERIFIER, address(demands), abi.encodeCall(IDataDemands.demand, (id, 1, 0, 1, bond)), _short(bond));
        vm.assertTrue(demands.isOpen(_key(d)));
        vm.assertEq(registry.task(id).deadline, deadline + WINDOW);
        _expectLocked(address(demands), verifier, before, bond);
        bytes memory data = abi.encodeCall(IDataDemands.answer, (d, _piece(1, 0, 1)));
        bytes memory early = abi.encodeWithSelector(IDataDemands.SolverFirst.selector, until - WINDOW / 2);
        _expectRefusedRelayed(address(demands), data, CHALLENGER, early);
        before = vault.free(solver);
        _relayedBy(challenger, SOLVER, address(demands), data, early);
        vm.assertFalse(demands.isOpen(_key(d)));
        vm.assertEq(vault.free(solver) - before, bond);
    }

    /// @dev A party of the task may relay what it may not sign, too.
    function test_a_watcher_commits() public {
        _toWatched(true, true);
        uint32 seating = registry.task(id).seating;
        vm.warp(verdicts.verdict(id).watchUntil);
        bytes memory data = abi.encodeCall(IJackpot.watch, (id, 0, "found"));
        bytes memory isParty = abi.encodeWithSelector(IJackpot.IsParty.selector, id, solver);
        _expectRefusedRelayed(address(jackpot), data, SOLVER, isParty);
        bytes memory notDrawn = abi.encodeWithSelector(IJackpot.NotDrawn.selector, mallory, 0);
        _relayedBy(solver, WATCHER, address(jackpot), data, notDrawn);
        vm.assertEq(jackpot.commitments(id, seating, watcher, 0), "found");
        vm.assertEq(jackpot.commitments(id, seating, solver, 0), bytes32(0));
    }

    /// @dev Mallory is refused though it names the party, and somebody relays what the party has signed.
    function _relayed(uint256 key, address desk, bytes memory data, bytes memory refusal) private {
        _relayedBy(donor, key, desk, data, refusal);
    }

    function _relayedBy(address relayer, uint256 key, address desk, bytes memory data, bytes memory refusal) private {
        _expectRefused(desk, data, vm.addr(key), refusal);
        _relay(relayer, _signed(key, desk, data));
    }

    function _signed(uint256 key, address desk, bytes memory data)
        private
        view
        returns (ERC2771Forwarder.ForwardRequestData memory request)
    {
        request = _request(forwarder, key, desk, 0, data);
        vm.assertTrue(forwarder.verify(request));
    }

    /// @dev Whoever relays has, loses and gains nothing by it.
    function _relay(address relayer, ERC2771Forwarder.ForwardRequestData memory request) private {
        uint256 free = vault.free(relayer);
        vm.prank(relayer);
        forwarder.execute(request);
        vm.assertEq(vault.free(relayer), free);
    }

    /// @dev Mallory appends the address of a party that may, and is still Mallory.
    function _expectRefused(address desk, bytes memory data, address party, bytes memory refusal) private {
        vm.prank(mallory);
        (bool done, bytes memory answer) = desk.call(abi.encodePacked(data, party));
        vm.assertFalse(done);
        vm.assertEq(answer, refusal);
    }

    /// @dev Who may not call may not sign either. The forwarder tells no reasons, the desk tells it one.
    function _expectRefusedRelayed(address desk, bytes memory data, uint256 key, bytes memory refusal) private {
        vm.prank(address(forwarder));
        (bool done, bytes memory answer) = desk.call(abi.encodePacked(data, vm.addr(key)));
        vm.assertFalse(done);
        vm.assertEq(answer, refusal);
        ERC2771Forwarder.ForwardRequestData memory request = _signed(key, desk, data);
        vm.prank(donor);
        (done,) = address(forwarder).call(abi.encodeCall(forwarder.execute, (request)));
        vm.assertFalse(done);
    }

    function _expectLocked(address desk, address party, uint256 before, uint256 amount) private view {
        vm.assertEq(vault.locked(desk, id, party), amount);
        vm.assertEq(before - vault.free(party), amount);
    }

    function _notAllowed(address party) private pure returns (bytes memory) {
        return abi.encodeWithSelector(Desk.NotAllowed.selector, party);
    }

    /// @dev What is in the way of Mallory is that it has nothing.
    function _short(uint256 amount) private view returns (bytes memory) {
        return abi.encodeWithSelector(IStakeVault.Short.selector, mallory, 0, amount);
    }
}
