// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TAG_LEAF} from "../../../contracts/commitments/MerkleBranch.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Opening} from "../../../contracts/market/ProfileTypes.sol";
import {Standing} from "../../../contracts/rounds/IWorkerBonds.sol";
import {Giver, Phase, PhaseProof, PlanTerms} from "../../../contracts/rounds/PlanTypes.sol";
import {RosterPlaces, SignedRoster} from "../../../contracts/rounds/RosterMembers.sol";
import {RoundDemands} from "../../../contracts/rounds/RoundDemands.sol";
import {RoundDesks} from "../../../contracts/rounds/RoundDesk.sol";
import {RoundDisputes} from "../../../contracts/rounds/RoundDisputes.sol";
import {RoundEvidence} from "../../../contracts/rounds/RoundEvidence.sol";
import {CountedPhase, RoundShares} from "../../../contracts/rounds/RoundShares.sol";
import {RoundClaim, SignedClaim} from "../../../contracts/rounds/RoundTypes.sol";
import {LoggedEntry, RoundDemand, TimedDemands} from "../../../contracts/rounds/TimedDemands.sol";
import {WorkerBonds} from "../../../contracts/rounds/WorkerBonds.sol";
import {Base} from "../Base.sol";
import {ToyGame} from "../market/Toys.sol";

/// @notice A registered plan, its keeper, workers and strangers, and a game whose winner the test names. What claims
/// hold is made up: the Python tests play with real ones.
abstract contract RoundsBase is Base {
    uint256 internal constant BROUGHT = 1000 ether;
    uint256 internal constant PARTIES = 6;
    uint256 internal constant DESKS = 5;
    uint128 internal constant STAKE = 4 ether;
    uint128 internal constant PAY = 1 ether + 1;
    uint128 internal constant UNITS = 100;
    uint128 internal constant WORK = 2 * UNITS;
    bytes32 private constant DOMAIN = keccak256(
        abi.encode(keccak256("EIP712Domain(string name,string version)"), keccak256("pol rounds"), keccak256("1"))
    );

    StakeVault internal vault;
    WorkerBonds internal bonds;
    RoundDisputes internal disputes;
    RoundEvidence internal evidence;
    RoundDemands internal demands;
    RoundShares internal shares;
    ToyGame internal game;
    address internal treasury = account("treasury");
    bytes32 internal id;

    function setUp() public virtual {
        vm.warp(1_800_000_000);
        vm.fee(1 gwei);
        vault = new StakeVault(address(0), 1 days, address(0), address(this));
        bonds = new WorkerBonds(vault, treasury);
        (disputes, evidence) = (new RoundDisputes(vault), new RoundEvidence(vault));
        (demands, shares) = (new RoundDemands(vault), new RoundShares(vault));
        game = new ToyGame();
        RoundDesks memory desks = RoundDesks(bonds, shares, game);
        bonds.wire(desks);
        disputes.wire(desks);
        evidence.wire(desks);
        demands.wire(desks);
        shares.wire(desks);
        address[] memory all = new address[](DESKS);
        for (uint256 i = 0; i < DESKS; ++i) {
            all[i] = _desk(i);
        }
        vault.wire(all);
        for (uint256 i = 0; i < PARTIES; ++i) {
            vm.deal(_party(i), BROUGHT);
            vm.prank(_party(i));
            vault.deposit{value: BROUGHT}(_party(i), BROUGHT);
        }
        // The last party is the submitter, the first one the keeper; no two keys are one.
        vm.prank(_party(PARTIES - 1));
        id = bonds.register(_terms());
        for (uint256 i = 0; i < PARTIES - 2; ++i) {
            vm.prank(_party(i));
            bonds.join(id);
        }
    }

    function _terms() internal pure returns (PlanTerms memory t) {
        (t.plan, t.phases, t.phaseCount, t.rounds) = ("plan", _phasesOf(_phase().phase), 1, 1000);
        t.coordinator = _party(0);
        (t.stake, t.keeperStake, t.price, t.pay, t.settlements) = (STAKE, 2 * STAKE, 0.01 ether, PAY, 4);
        t.work = WORK;
        (t.period, t.lineWindow, t.answerWindow, t.leaveDelay, t.clock) = (3 days, 1 days, 1 days, 4 days, 1 hours);
    }

    /// @dev The only phase of the plan, of two slots and two parts.
    function _phase() internal pure returns (PhaseProof memory proof) {
        (proof.phase.name, proof.phase.parts, proof.phase.slots, proof.phase.units) = ("name", 2, 2, UNITS);
        (proof.phase.author, proof.phase.authorIndex) = (Giver.Route, 0);
    }

    function _phasesOf(Phase memory p) internal pure returns (bytes32) {
        bytes memory first =
            abi.encodePacked(TAG_LEAF, p.name, p.program, p.constants, p.seats, p.steps, p.parts, p.slots);
        return keccak256(abi.encodePacked(first, p.rules, p.units, uint8(p.author), p.authorIndex));
    }

    function _desk(uint256 i) internal view returns (address) {
        return [address(bonds), address(disputes), address(evidence), address(demands), address(shares)][i];
    }

    function _party(uint256 i) internal pure returns (address) {
        return vm.addr(_key(i));
    }

    function _key(uint256 i) private pure returns (uint256) {
        return i % PARTIES + 1;
    }

    /// @dev A claim that a party has signed.
    function _signed(uint256 party, uint64 round, bytes32 end) internal view returns (SignedClaim memory signed) {
        RoundClaim memory c = signed.claim;
        (c.plan, c.worker, c.round, c.program, c.constants) = (id, _party(party), round, "program", "constants");
        (c.firstStep, c.steps, c.start, c.end, c.sources, c.roster) = (round, 1, "start", end, "sources", "roster");
        signed.signature = _signature(party, _digestOf(c));
    }

    /// @dev A claim of a party that names a roster.
    function _signedUnder(uint256 party, bytes memory roster) internal view returns (SignedClaim memory signed) {
        signed = _signed(party, 0, "end");
        signed.claim.roster = keccak256(roster);
        signed.signature = _signature(party, _digestOf(signed.claim));
    }

    /// @dev The members of a roster of these workers, and the signature of a party under it for a round.
    function _roster(address[] memory workers, uint64 round, uint256 signer)
        internal
        view
        returns (bytes memory text, bytes memory signature)
    {
        for (uint256 i = 0; i < workers.length; ++i) {
            bytes memory before = i == 0 ? bytes("{\"members\":[") : bytes(",");
            text = abi.encodePacked(text, before, "{\"joined\":0,\"role\":\"\",", _seat(i, workers[i]), "}");
        }
        text = abi.encodePacked(text, "],\"partners\":[],\"provisional\":false,\"routes\":[]}");
        signature = _signature(signer, _rosterDigest(text, round));
    }

    /// @dev A roster of `_roster` as it is shown; the seat of a member stands at byte `seat`.
    function _shownRoster(bytes memory text, bytes memory signature, uint256 seat)
        internal
        pure
        returns (SignedRoster memory)
    {
        return SignedRoster(text, RosterPlaces(text.length - 32, 1, text.length - 12), true, seat, signature);
    }

    /// @dev What the coordinator signs.
    function _rosterDigest(bytes memory text, uint64 round) internal view returns (bytes32) {
        bytes32 kind = keccak256("Roster(bytes32 plan,uint64 round,bytes32 document)");
        return _typed(keccak256(abi.encode(kind, id, round, keccak256(text))));
    }

    /// @dev What `SignedText.seatOf` reads.
    function _seat(uint256 seat, address worker) internal pure returns (bytes memory) {
        return abi.encodePacked("\"seat\":", vm.toString(seat), ",\"weight\":1,\"worker\":\"", _lower(worker), "\"");
    }

    /// @dev A line of a claim in each of `count` rounds from one on.
    function _line(uint64 round, uint256 count) internal pure returns (bytes memory line) {
        for (uint256 i = 0; i < count; ++i) {
            line = abi.encodePacked(line, round + uint64(i), uint64(0), keccak256(abi.encode(round, i)));
        }
    }

    /// @dev The only phase, as a line shows it.
    function _phasesOfLine() internal pure returns (CountedPhase[] memory phases) {
        phases = new CountedPhase[](1);
        phases[0].proof = _phase();
    }

    /// @dev A party counts so many claims.
    function _post(uint256 party, uint32 number, uint64 round, uint256 count) internal {
        vm.prank(_party(party));
        shares.post(id, number, _line(round, count), _phasesOfLine());
    }

    /// @dev Disputes a claim, announced in the block before.
    function _dispute(address challenger, SignedClaim memory signed) internal returns (bool done) {
        bytes memory payload = "states";
        bytes32 kind = keccak256(abi.encode(_digestOf(signed.claim), keccak256(payload)));
        disputes.announce(keccak256(abi.encode(challenger, id, kind)));
        vm.roll(vm.getBlockNumber() + 1);
        Opening memory opening = Opening("header", payload, type(uint128).max);
        vm.prank(challenger);
        (done,) = address(disputes).call(abi.encodeCall(RoundDisputes.dispute, (id, signed, opening)));
    }

    /// @dev Announces a call that shows evidence, in the block before.
    function _announce(address prover, bytes memory data) internal {
        evidence.announce(keccak256(abi.encode(prover, id, keccak256(data))));
        vm.roll(vm.getBlockNumber() + 1);
    }

    /// @dev The call that shows two claims of one place.
    function _twoClaims(uint256 party, uint64 round) internal view returns (bytes memory) {
        (SignedClaim memory one, SignedClaim memory other) =
            (_signed(party, round, "end"), _signed(party, round, "another end"));
        return abi.encodeCall(RoundEvidence.showTwoClaims, (id, one, other));
    }

    /// @dev The call, announced, shows what it says.
    function _show(address prover, bytes memory data) internal {
        _announce(prover, data);
        vm.prank(prover);
        (bool done,) = address(evidence).call(data);
        vm.assertTrue(done);
    }

    function _pass(uint256 time) internal {
        vm.warp(vm.getBlockTimestamp() + time);
    }

    /// @dev Every wei that came in is somebody's: free, locked, or in a desk's pot.
    function _checkBooks() internal view {
        uint256 owed = vault.free(treasury);
        for (uint256 i = 0; i < PARTIES; ++i) {
            owed += vault.free(_party(i));
        }
        for (uint256 d = 0; d < DESKS; ++d) {
            owed += vault.pot(_desk(d), id);
            for (uint256 i = 0; i < PARTIES; ++i) {
                owed += vault.locked(_desk(d), id, _party(i));
            }
        }
        vm.assertEq(owed, PARTIES * BROUGHT);
        vm.assertEq(address(vault).balance, PARTIES * BROUGHT);
    }

    function _digestOf(RoundClaim memory claim) internal pure returns (bytes32) {
        bytes32 kind = keccak256(
            abi.encodePacked(
                "RoundClaim(bytes32 plan,address worker,uint64 round,uint32 phase,uint32 part,bytes32 roster,",
                "bytes32 program,bytes32 constants,uint64 firstStep,uint64 steps,bytes32 start,bytes32 end,",
                "bytes32 sources)"
            )
        );
        return _typed(keccak256(abi.encode(kind, claim)));
    }

    function _signature(uint256 party, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(_key(party), digest);
        return abi.encodePacked(r, s, v);
    }

    function _typed(bytes32 content) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", DOMAIN, content));
    }

    function _lower(address worker) private pure returns (bytes memory digits) {
        bytes memory alphabet = "0123456789abcdef";
        bytes20 raw = bytes20(worker);
        digits = new bytes(42);
        (digits[0], digits[1]) = ("0", "x");
        for (uint256 i = 0; i < 20; ++i) {
            (digits[2 * i + 2], digits[2 * i + 3]) = (alphabet[uint8(raw[i]) >> 4], alphabet[uint8(raw[i]) & 15]);
        }
    }
}
