// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MarketDesk} from "../../../contracts/market/MarketDesk.sol";
import {Vm} from "../Base.sol";
import {CounterclaimBase} from "./CounterclaimBase.sol";
import {Charge, Claim, ClaimCharge, DataDemand, Desk, Disclosure, ForcedErrors} from "./MarketBase.sol";
import {ITaskRegistry, LogProof, Look, NaiveLog, Opening, Outcome, PATIENCE, Portion} from "./MarketBase.sol";
import {Reordered, Rerun, Segment, Status, Terms, Witness} from "./MarketBase.sol";

/// @notice Plays the life of a task in both modes, and tries every call that a desk has at every moment of it.
/// fixtures/vectors/transitions.jsonl says what comes of each: the statuses that follow, `done` where the status stays,
/// or the error. `python tests/chain/test_transitions.py` writes the file and compares it with the specification.
contract TransitionsTest is CounterclaimBase {
    struct Call {
        string name;
        address caller;
        address desk;
        bytes data;
    }

    struct LifeRow {
        string head;
        string results;
        string last;
        bool varies;
    }

    event log_string(string);

    error Tried(bool worked, bytes answer, Vm.Log[] logs);

    string private constant PATH = "fixtures/vectors/transitions.jsonl";
    string private constant STATUSES = "None Profiling Bidding Training Committed Verifying Watched Contested Closed";
    string private constant DESKS =
        "Seats ProofRegistry Profiles Verdicts DataDemands Settlement Challenges Objections";
    string private constant ERRORS = "AlreadyReplaced(bytes32) Contestable(uint64) DeadlineNotPassed(uint64) "
        "DeadlinePassed(uint64) Decided(uint256) "
        "DemandsOpen(uint32) DisputesOpen(uint32) DutyKnown(bytes32) DutyUnknown(bytes32) DutyUnknown(uint64) "
        "HasBids(uint32) IllegalTransition(uint8,uint8) NoProfile(bytes32) NoSeat(bytes32) NoSuchDemand(bytes32) "
        "NotAllowed(address) NotExact(bytes32) NotPinned(bytes32) NotSilent(bytes32) NotTolerant(bytes32) "
        "NotUnderstated(uint64) NotUnserved(bytes32) NotZero(uint64) NothingToSettle(uint256) "
        "ProfileAlreadyPosted() ProfileFell(bytes32) ProofFell(bytes32) RoundNotReached(uint64) "
        "RoundStands(uint64) TooEarly(uint256) TooFewTickets(address,uint256,uint256) UnknownClaim(uint32) "
        "UnknownCounterclaim(uint256) UnknownDispute(uint256) VerdictFell(bytes32) WrongSecret() "
        "WrongStatus(bytes32,uint8)";

    mapping(bytes4 selector => string) private _errors;
    mapping(address account => string) private _names;
    string[] private _statuses;
    Call[] private _calls;
    string private _deskName;
    address private _desk;
    DataDemand private _asked;
    bool private _isExact;

    function setUp() public override {
        super.setUp();
        string[] memory errors = vm.split(ERRORS, " ");
        for (uint256 i = 0; i < errors.length; ++i) {
            _errors[bytes4(keccak256(bytes(errors[i])))] = vm.split(errors[i], "(")[0];
        }
        _statuses = vm.split(STATUSES, " ");
        (_names[submitter], _names[solver], _names[verifier]) = ("submitter", "solver", "verifier");
        _names[challenger] = "anybody";
    }

    function _terms() internal view override returns (Terms memory) {
        return _isExact ? _exact(super._terms()) : super._terms();
    }

    function test_rows() public {
        vm.pauseGasMetering();
        LifeRow[][] memory told = new LifeRow[][](_statuses.length);
        uint256 start = vm.snapshotState();
        _liveTolerant(told);
        vm.revertToState(start);
        _isExact = true;
        id = registry.computeTaskId(submitter, 0, _terms());
        _liveExact(told);
        string memory wrong;
        for (uint256 s = 0; s < told.length; ++s) {
            for (uint256 i = 0; i < told[s].length; ++i) {
                LifeRow memory row = told[s][i];
                string memory results = row.varies ? row.results : string.concat(',"always":"', row.last, '"');
                string memory line = string.concat('{"status":"', _statuses[s], '",', row.head, results, "}");
                emit log_string(line);
                if (keccak256(bytes(line)) != keccak256(bytes(vm.readLine(PATH))) && bytes(wrong).length == 0) {
                    wrong = line;
                }
            }
        }
        vm.assertEq(wrong, "", "the first row that the file doesn't have");
        vm.assertEq(vm.readLine(PATH), "", "a row too many");
    }

    function _liveTolerant(LifeRow[][] memory told) private {
        _moment(told, "there is no task");
        _submit();
        _takeSeat(told, 0);
        _profileMoments(told);
        _biddingMoments(told);
        vm.warp(registry.task(id).deadline);
        _moment(told, "last second of the training");
        _late(told, "the solver is late", 1);
        _commit();
        _takeSeat(told, ForcedErrors.commitment(verifier, id, secret));
        _verifyingMoments(told);
        _verdict(verifier, true);
        _watchedMoments(told);
        _disclose(verifier, true);
        _contestedMoments(told);
        settlement.settle(id);
        _moment(told, "settled");
    }

    function _liveExact(LifeRow[][] memory told) private {
        _moment(told, "exact mode");
        _submit();
        _moment(told, "exact mode");
        _award();
        _moment(told, "exact mode");
        _commit();
        _moment(told, "exact mode");
        _seatVerifier(verifier, false);
        _moment(told, "exact mode");
        _verdict(verifier, true);
        _openWatch();
        _moment(told, "exact mode");
        _disclose(verifier, true);
        uint256 here = vm.snapshotState();
        (Segment memory segment, Opening memory opening) = (_undrawn(), _opening());
        vm.prank(challenger);
        objections.object(id, segment, opening);
        _pass(_terms().challengeWindow + 1);
        _moment(told, "exact mode, an objection is open");
        objectionGame.report(1, false);
        _moment(told, "exact mode, the proof has fallen");
        vm.revertToState(here);
        _moment(told, "exact mode");
        _settle();
        _moment(told, "exact mode");
    }

    function _takeSeat(LifeRow[][] memory told, bytes32 commitment) private {
        _moment(told, "the seat waits for its round");
        _silent(told, "the round of the seat");
        if (commitment != 0) {
            _give(proofs.proof(id).round, "draw");
            _withheld(told);
        }
        _give(seats.seating(id).round, "seat");
        _moment(told, "the round of the seat is recorded");
        seats.openClaims(id);
        vm.warp(seats.seating(id).until);
        _moment(told, "last second of claims");
        _late(told, "nobody has claimed", 1);
        vm.prank(verifier);
        seats.claim(id, 0, commitment);
        _pass(1);
        _moment(told, "claims are over");
        seats.decide(id);
    }

    function _profileMoments(LifeRow[][] memory told) private {
        vm.warp(registry.task(id).deadline);
        _moment(told, "last second of the profile");
        _late(told, "the profiler is late", 1);
        _profile();
        vm.warp(profiles.profile(id).deadline);
        _moment(told, "last second of challenges");
        uint256 here = vm.snapshotState();
        _challengeProfile();
        _late(told, "a dispute is open", 1);
        profileGame.report(1, false);
        _moment(told, "the profile has fallen");
        vm.revertToState(here);
        _pass(1);
        _moment(told, "challenges are over");
        profiles.conclude(id);
    }

    function _biddingMoments(LifeRow[][] memory told) private {
        _moment(told, "nobody has bid");
        _late(told, "nobody has bid in time", _terms().bidWindow + 1);
        uint256 here = vm.snapshotState();
        bytes32 roundId = _revealed();
        _late(told, "a bid is revealed", 0);
        _pass(2 * _terms().bidWindow + 1);
        auction.expire(roundId);
        _moment(told, "the round has expired");
        vm.revertToState(here);
        _award();
    }

    function _verifyingMoments(LifeRow[][] memory told) private {
        _moment(told, "the duty is unknown");
        _silent(told, "the round of the duty");
        _giveDuty(false);
        _withheld(told);
        _unservedMoments(told);
        vm.warp(registry.task(id).deadline);
        _moment(told, "last second of the verdict");
        _late(told, "the verifier is late", 1);
    }

    /// @dev Two verifiers say so while an objection is open, and after it.
    function _unservedMoments(LifeRow[][] memory told) private {
        uint256 here = vm.snapshotState();
        vm.prank(verifier);
        settlement.unserved(id);
        _seatVerifier(nextVerifier, false);
        _moment(told, "another has said that it isn't served");
        _counterclaim(challenger, _undrawn().index);
        vm.prank(nextVerifier);
        settlement.unserved(id);
        _moment(told, "two aren't served, a counterclaim is open");
        _pass(_terms().challengeWindow + 1);
        counterclaims.conclude(1);
        _moment(told, "two aren't served");
        vm.revertToState(here);
    }

    function _watchedMoments(LifeRow[][] memory told) private {
        _moment(told, "the watchers aren't drawn");
        _silent(told, "the round of the watchers");
        _drawWatcher();
        _moment(told, "watchers are drawn");
        verdicts.openWatch(id);
        _withheld(told);
        vm.warp(verdicts.verdict(id).watchUntil);
        _moment(told, "last second of the watch");
        uint256 here = vm.snapshotState();
        _reportLeak(challenger);
        _late(told, "the secret has leaked", 1);
        vm.revertToState(here);
        _pass(_terms().disclosureWindow);
        _moment(told, "last second of the disclosure");
        _late(told, "nobody has disclosed", 1);
        vm.revertToState(here);
    }

    function _contestedMoments(LifeRow[][] memory told) private {
        uint256 here = vm.snapshotState();
        _asked = _demand(challenger);
        _pass(WINDOW + 1);
        _moment(told, "data are withheld while challenges come");
        _challenge();
        vm.warp(registry.task(id).deadline + 1);
        _moment(told, "data are withheld, a dispute is open");
        vm.revertToState(here);
        vm.warp(registry.task(id).deadline);
        _moment(told, "last second of challenges");
        _withheld(told);
        here = vm.snapshotState();
        _challenge();
        _late(told, "a dispute is open", 1);
        game.report(1, false);
        _moment(told, "the verdict has fallen");
        vm.revertToState(here);
        _counterclaim(challenger, _undrawn().index);
        _late(told, "a counterclaim is open", 1);
        vm.revertToState(here);
        _pass(1);
        _moment(told, "challenges are over");
    }

    /// @dev The beacon doesn't record a round, and not the one that takes its place.
    function _silent(LifeRow[][] memory told, string memory what) private {
        uint256 here = vm.snapshotState();
        _pass(PATIENCE);
        _moment(told, string.concat(what, ": last second of patience"));
        _late(told, string.concat(what, ": last second of patience, twice"), PATIENCE);
        _late(told, string.concat(what, ": overdue for long"), PATIENCE + 1);
        _pass(1);
        _moment(told, string.concat(what, ": overdue"));
        MarketDesk[3] memory desks = [MarketDesk(seats), proofs, verdicts];
        for (uint256 i = 0; i < 3; ++i) {
            // slither-disable-next-line unchecked-lowlevel
            address(desks[i]).call(abi.encodeCall(seats.replaceRound, (id)));
        }
        _pass(PATIENCE);
        _moment(told, string.concat(what, ", replaced: last second of patience"));
        _late(told, string.concat(what, ", replaced: overdue"), 1);
        vm.revertToState(here);
    }

    function _withheld(LifeRow[][] memory told) private {
        uint256 here = vm.snapshotState();
        _asked = _demand(challenger);
        vm.warp(_asked.deadline);
        _moment(told, "last second of an answer");
        _late(told, "data are withheld", 1);
        vm.revertToState(here);
    }

    function _late(LifeRow[][] memory told, string memory name, uint256 time) private {
        uint256 here = vm.snapshotState();
        _pass(time);
        _moment(told, name);
        vm.revertToState(here);
    }

    function _moment(LifeRow[][] memory told, string memory name) private {
        _announce();
        _list();
        Status status = registry.task(id).status;
        LifeRow[] memory rows = told[uint256(status)];
        bool first = rows.length == 0;
        if (first) {
            rows = told[uint256(status)] = new LifeRow[](_calls.length + 8);
            _tryDesks(rows, status);
        }
        for (uint256 i = 0; i < _calls.length; ++i) {
            (LifeRow memory row, string memory result) = (rows[i], _try(_calls[i], status));
            if (first) row.head = string.concat('"call":"', _calls[i].name, '","by":"', _names[_calls[i].caller], '"');
            else if (keccak256(bytes(result)) != keccak256(bytes(row.last))) row.varies = true;
            (row.results, row.last) = (string.concat(row.results, ',"', name, '":"', result, '"'), result);
        }
    }

    /// @dev Where the desks may move a task from here, without a reason.
    function _tryDesks(LifeRow[] memory rows, Status from) private {
        MarketDesk[8] memory desks =
            [MarketDesk(seats), proofs, profiles, verdicts, demands, settlement, challenges, objections];
        string[] memory names = vm.split(DESKS, " ");
        for (uint256 d = 0; d < 8; ++d) {
            string memory ways = "";
            for (uint256 to = 0; to < _statuses.length; ++to) {
                bytes memory data = abi.encodeCall(registry.advance, (id, from, Status(to), 0));
                string memory answer = _try(Call("", address(desks[d]), address(registry), data), from);
                if (keccak256(bytes(answer)) == keccak256("IllegalTransition")) continue;
                ways = string.concat(ways, bytes(ways).length == 0 ? "" : " ", answer);
            }
            LifeRow memory row = rows[_calls.length + d];
            (row.head, row.last) = (string.concat('"call":"TaskRegistry.advance","by":"', names[d], '"'), ways);
        }
    }

    /// @dev Undone by its own revert. The forwarder that this market trusts is the address zero.
    function attempt(Call calldata call, bool relayed) external {
        bytes memory data = relayed ? abi.encodePacked(call.data, call.caller) : call.data;
        vm.recordLogs();
        vm.prank(relayed ? address(0) : call.caller);
        (bool worked, bytes memory answer) = call.desk.call(data);
        revert Tried(worked, answer, vm.getRecordedLogs());
    }

    function _tried(Call memory call, bool relayed) private returns (bool, bytes memory, Vm.Log[] memory) {
        try this.attempt(call, relayed) {
            revert();
        } catch (bytes memory tried) {
            assembly ("memory-safe") {
                // Without its selector.
                mstore(add(tried, 4), sub(mload(tried), 4))
                tried := add(tried, 4)
            }
            return abi.decode(tried, (bool, bytes, Vm.Log[]));
        }
    }

    function _try(Call memory call, Status from) private returns (string memory told) {
        (bool worked, bytes memory answer, Vm.Log[] memory logs) = _tried(call, false);
        told = worked ? _ways(logs) : _refusal(call, from, answer);
        // Roles, money and events are the signer's where somebody else relays what a party has signed.
        if (vault.isDesk(call.caller) || (!worked && bytes4(answer) != Desk.NotAllowed.selector)) return told;
        (bool done,, Vm.Log[] memory same) = _tried(call, true);
        vm.assertTrue(done == worked && keccak256(abi.encode(same)) == keccak256(abi.encode(logs)), call.name);
    }

    function _ways(Vm.Log[] memory logs) private view returns (string memory ways) {
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].topics[0] != ITaskRegistry.Advanced.selector || logs[i].topics[1] != id) continue;
            (uint256 to,) = abi.decode(logs[i].data, (uint256, uint64));
            ways = string.concat(ways, bytes(ways).length == 0 ? "" : " ", _statuses[to]);
        }
        return bytes(ways).length == 0 ? "done" : ways;
    }

    /// @dev Its name; its arguments tell what is the case.
    function _refusal(Call memory call, Status from, bytes memory answer) private view returns (string memory name) {
        bytes4 selector = bytes4(answer);
        name = _errors[selector];
        vm.assertTrue(bytes(name).length > 0, string.concat(call.name, " fails by ", vm.toString(bytes32(answer))));
        bytes memory expected = answer;
        if (selector == ITaskRegistry.WrongStatus.selector) expected = abi.encodeWithSelector(selector, id, from);
        if (selector == Desk.NotAllowed.selector) expected = abi.encodeWithSelector(selector, call.caller);
        vm.assertEq(answer, expected, call.name);
        uint256 time;
        assembly ("memory-safe") {
            time := mload(add(answer, 36))
        }
        if (selector == ITaskRegistry.DeadlinePassed.selector) vm.assertLt(time, vm.getBlockTimestamp());
        if (selector == ITaskRegistry.DeadlineNotPassed.selector) vm.assertLe(vm.getBlockTimestamp(), time);
    }

    // What the calls show. Before the draw nobody knows what a claim is about.

    function claimsAndEntries()
        external
        view
        returns (Claim[] memory claims, LogProof[] memory logProofs, bytes32[] memory)
    {
        (claims, logProofs) = _claims(true);
        return (claims, logProofs, _hashes(claims));
    }

    function _evidence() private view returns (Claim[] memory, LogProof[] memory, bytes32[] memory) {
        try this.claimsAndEntries() returns (Claim[] memory c, LogProof[] memory p, bytes32[] memory e) {
            return (c, p, e);
        } catch {
            return (new Claim[](2), new LogProof[](2), new bytes32[](2));
        }
    }

    function _undrawn() private view returns (Segment memory) {
        return _segment(proofs.isDrawn(id) ? _one(false) : 0);
    }

    function _charge() private view returns (ClaimCharge memory charge) {
        (Claim[] memory claims,, bytes32[] memory entries) = _evidence();
        (charge.claim, charge.entries, charge.kind) = (claims[0], entries, 1);
    }

    /// @dev In a block before.
    function _announce() private {
        uint32 segment = _undrawn().index;
        _announceProfileCharge(challenger, Charge.Portion, 0, 0);
        _announceProfileCharge(challenger, Charge.Rerun, 0, 0);
        _announceProfileCharge(challenger, Charge.Distance, 0, 1);
        _announceProfileCharge(challenger, Charge.Reference, 0, 1);
        _announceConviction(challenger, _witness(0), 1);
        _announceLeak(challenger, secret);
        _announceCharge(challenger, _charge());
        objections.announce(keccak256(abi.encode(challenger, id, keccak256(abi.encode(segment, keccak256(PAYLOAD))))));
        _announceCounterclaim(challenger, _hash(_bad(segment)));
        _announceContest(solver, counterclaims.last(), _charge(segment));
    }

    function _of(string memory name, address desk) private {
        (_deskName, _desk) = (name, desk);
    }

    function _add(address caller, string memory name, bytes memory data) private {
        _calls.push(Call(string.concat(_deskName, ".", name), caller, _desk, data));
    }

    /// @dev By anybody: verbs that take the id of the task.
    function _plain(string memory names) private {
        string[] memory all = vm.split(names, " ");
        for (uint256 i = 0; i < all.length; ++i) {
            _add(challenger, all[i], abi.encodeWithSignature(string.concat(all[i], "(bytes32)"), id));
        }
    }

    /// @dev By anybody: the end of a dispute.
    function _ends(uint256 number) private {
        _add(challenger, "settleDispute", abi.encodeWithSignature("settleDispute(uint256)", number));
        _add(challenger, "onResolved", abi.encodeWithSignature("onResolved(uint256,bool)", number, true));
    }

    /// @dev By two: who may, and who may not.
    function _addBoth(address one, address other, string memory name, bytes memory data) private {
        _add(one, name, data);
        // Who may is appended, but not by the forwarder.
        _add(other, name, abi.encodePacked(data, one));
    }

    function _list() private {
        Opening memory opening = _opening();
        Segment memory s = _undrawn();
        delete _calls;
        _listTaskAndSeats();
        _listProofs();
        _listProfiles(opening);
        _listVerdicts();
        _listChallenges(opening);
        _listObjections(s, opening);
        _listCounterclaims(s, opening);
        _listDemands();
        _listSettlement();
    }

    function _listTaskAndSeats() private {
        _of("TaskRegistry", address(registry));
        _add(submitter, "submit", abi.encodeCall(registry.submit, (_terms())));
        _add(submitter, "cancel", abi.encodeCall(registry.cancel, (id)));
        _plain("cancel award openBidding");
        _add(challenger, "advance", abi.encodeCall(registry.advance, (id, registry.task(id).status, Status.Closed, 0)));
        _add(challenger, "seat", abi.encodeCall(registry.seat, (id, 1, challenger)));
        _add(challenger, "close", abi.encodeCall(registry.close, (id, Outcome.Accepted)));
        bytes32 commitment = seats.seating(id).verifies ? bytes32("secret") : bytes32(0);
        _of("Seats", address(seats));
        _addBoth(verifier, solver, "claim", abi.encodeCall(seats.claim, (id, 0, commitment)));
        _add(submitter, "claim", abi.encodeCall(seats.claim, (id, 0, commitment)));
        _plain("openClaims replaceRound decide release forfeit");
        _add(challenger, "open", abi.encodeCall(seats.open, (id, true)));
        _add(challenger, "slash", abi.encodeCall(seats.slash, (id, challenger, 1)));
    }

    function _listProofs() private {
        (bytes32 root, bytes32[] memory none) = (_root(5), new bytes32[](0));
        _of("ProofRegistry", address(proofs));
        _addBoth(solver, challenger, "post", abi.encodeCall(proofs.post, (id, 5, root, none)));
        bytes memory committed = abi.encodeCall(proofs.commit, (id, 5, root, none, "proof", _inclusion(0)));
        _addBoth(solver, challenger, "commit", committed);
        _plain("replaceRound");
    }

    function _listProfiles(Opening memory o) private {
        (Portion[] memory p, bytes32 root, Witness[3] memory witnesses) = _measured();
        Witness memory rerun = _witness(0);
        Reordered memory program = Reordered(_programs()[0], NaiveLog.inclusionPath(_programs(), 0, 0, RERUNS));
        _of("Profiles", address(profiles));
        _addBoth(verifier, challenger, "post", abi.encodeCall(profiles.post, (id, p, root, witnesses, "profile")));
        bytes memory charged = abi.encodeCall(profiles.challengePortion, (id, p, 0, o));
        _addBoth(challenger, verifier, "challengePortion", charged);
        _add(challenger, "challengeRerun", abi.encodeCall(profiles.challengeRerun, (id, p, rerun, program, o)));
        _add(challenger, "challengeDistance", abi.encodeCall(profiles.challengeDistance, (id, p, rerun, 1, o)));
        _add(challenger, "challengeReference", abi.encodeCall(profiles.challengeReference, (id, p, 0, 1, o)));
        _add(challenger, "convict", abi.encodeCall(profiles.convict, (id, p, rerun, 1)));
        _plain("conclude cancel");
        _ends(profileGame.disputes());
    }

    function _listVerdicts() private {
        (Claim[] memory claims, LogProof[] memory logProofs,) = _evidence();
        bytes memory posted = abi.encodeCall(verdicts.post, (id, claims, logProofs, new Look[](0), "nothing"));
        Disclosure memory disclosure;
        disclosure.secret = secret;
        _of("Verdicts", address(verdicts));
        _addBoth(verifier, challenger, "post", posted);
        _add(challenger, "disclose", abi.encodeCall(verdicts.disclose, (id, disclosure)));
        _add(challenger, "reportLeak", abi.encodeCall(verdicts.reportLeak, (id, secret)));
        _plain("openWatch replaceRound claimUndisclosed void forget");
    }

    function _listChallenges(Opening memory o) private {
        ClaimCharge memory c = _charge();
        Reordered memory none = Reordered(0, new bytes32[](0));
        _of("Challenges", address(challenges));
        _addBoth(challenger, verifier, "challenge", abi.encodeCall(challenges.challenge, (id, c, o)));
        bytes memory charged = abi.encodeCall(challenges.challengeLook, (id, c, new Rerun[](0), none, o));
        _add(challenger, "challengeLook", charged);
        _add(challenger, "settleByProof", abi.encodeCall(challenges.settleByProof, (game.disputes(), c, 0)));
        _ends(game.disputes());
    }

    function _listObjections(Segment memory s, Opening memory o) private {
        uint256 last = objectionGame.disputes();
        _of("Objections", address(objections));
        _addBoth(challenger, solver, "object", abi.encodeCall(objections.object, (id, s, o)));
        _add(challenger, "objectToZero", abi.encodeCall(objections.objectToZero, (id, 1, new bytes32[](0))));
        _add(challenger, "settleByProof", abi.encodeCall(objections.settleByProof, (last, s, 0)));
        _add(challenger, "admit", abi.encodeCall(objections.admit, (id, challenger, s, 0)));
        _add(challenger, "conclude", abi.encodeCall(objections.conclude, (id, challenger, 0)));
        _ends(last);
    }

    function _listCounterclaims(Segment memory s, Opening memory o) private {
        (uint256 number, uint128 most) = (counterclaims.last(), type(uint128).max);
        (Reordered memory none, Rerun[] memory look) = (Reordered(0, new bytes32[](0)), new Rerun[](0));
        bytes memory claimed = abi.encodeCall(counterclaims.counterclaim, (id, _bad(s.index), s.logProof, look, most));
        _of("Counterclaims", address(counterclaims));
        _addBoth(challenger, solver, "counterclaim", claimed);
        _add(solver, "contest", abi.encodeCall(counterclaims.contest, (number, _charge(s.index), look, none, o)));
        _add(challenger, "conclude", abi.encodeCall(counterclaims.conclude, (number)));
        _ends(counterclaimGame.disputes());
    }

    function _listDemands() private {
        bytes memory asked = abi.encodeCall(demands.demand, (id, 2, 0, 1, demands.bondOf()));
        _of("DataDemands", address(demands));
        _addBoth(challenger, verifier, "demand", asked);
        _add(solver, "answer", abi.encodeCall(demands.answer, (_asked, _piece(_asked.entry, 0, 1))));
        _add(challenger, "expire", abi.encodeCall(demands.expire, (_asked)));
    }

    function _listSettlement() private {
        address holder = nextVerifier == registry.task(id).holder ? nextVerifier : verifier;
        _of("Settlement", address(settlement));
        _add(holder, "unserved", abi.encodeCall(settlement.unserved, (id)));
        _plain("unserved settle claimSolverDefault claimSeatDefault claimUnserved extend abandon refund");
        _add(challenger, "hold", abi.encodeCall(settlement.hold, (id, challenger, _terms())));
        _add(challenger, "holdStake", abi.encodeCall(settlement.holdStake, (id, challenger, 1)));
        _add(challenger, "payProfiler", abi.encodeCall(settlement.payProfiler, (id, challenger)));
        _add(challenger, "split", abi.encodeCall(settlement.split, (id, 1, challenger, 1)));
        _add(challenger, "payObjector", abi.encodeCall(settlement.payObjector, (id, challenger, 0)));
        _add(challenger, "claimWithheld", abi.encodeCall(settlement.claimWithheld, (id, challenger, false)));
    }
}
