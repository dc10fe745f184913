// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {KIND_REPLAY} from "../dispute/DisputeKinds.sol";
import {IDisputeGame, StartParams} from "../dispute/IDisputeGame.sol";
import {IDisputeResolver} from "../dispute/IDisputeResolver.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {Announcements} from "../market/Announcements.sol";
import {Opening} from "../market/ProfileTypes.sol";
import {Split} from "../market/Split.sol";
import {Ending} from "../market/TaskTypes.sol";
import {Standing} from "./IWorkerBonds.sol";
import {PlanTerms} from "./PlanTypes.sol";
import {RoundDesk, RoundDesks} from "./RoundDesk.sol";
import {RoundSignatures} from "./RoundSignatures.sol";
import {RoundClaim, SignedClaim} from "./RoundTypes.sol";

/// @notice A dispute about the execution of a claim.
struct RoundDispute {
    bytes32 id; // of the plan
    address worker;
    address challenger;
    Ending ending;
    uint256 bond;
}

/// @title RoundDisputes
/// @notice Anybody with a bond disputes the execution of a signed claim: the walk ends at one scalar operation
/// (docs/spec/rounds.md, "On a chain").
/// @dev Its game is a second deployment of the market's. Bonds are locked under the plan's id.
contract RoundDisputes is IDisputeResolver, RoundDesk, Announcements {
    using RoundSignatures for RoundClaim;
    using RoundSignatures for SignedClaim;

    /// @notice A claim is disputed.
    event ClaimDisputed(
        bytes32 indexed id,
        uint256 indexed number,
        address indexed challenger,
        address worker,
        bytes32 claim,
        uint256 bond,
        SignedClaim signed
    );
    /// @notice The dispute is over: the claim stood or fell, or its author had lost its stake by then.
    event ClaimDecided(bytes32 indexed id, uint256 indexed number, Ending ending, bool moot);

    /// @notice There is no dispute `number`.
    error UnknownDispute(uint256 number);
    /// @notice The dispute goes on, or is settled.
    error NothingToSettle(uint256 number);

    /// @notice Gas of one side in the longest dispute, which half of a bond pays at the base fee of the dispute.
    uint256 public constant DEFENSE_GAS = 1_000_000;
    /// @dev The longest clock that a game takes.
    uint256 private constant MOST_TIME = type(uint24).max;

    /// @notice Arbitrates.
    IDisputeGame public game;
    mapping(uint256 number => RoundDispute) private _disputes;
    mapping(bytes32 id => mapping(address worker => uint256)) private _open;

    constructor(IStakeVault vault_) RoundDesk(vault_) {}

    /// @dev The game's resolver is this contract, so neither can know the other when it is made.
    function _wired(RoundDesks calldata desks) internal override {
        game = desks.game;
    }

    /// @notice Disputes what a worker has signed. The dispute was announced in an earlier block, with the evidence
    /// `keccak256(abi.encode(claim, keccak256(payload)))`.
    /// @param opening The header of the claim's program, the caller's own states along the claim, and its highest bond.
    // The contract called is part of the deployment and calls nobody.
    // slither-disable-next-line reentrancy-events,reentrancy-benign
    function dispute(bytes32 id, SignedClaim calldata signed, Opening calldata opening)
        external
        returns (uint256 number)
    {
        PlanTerms memory t = _termsFor(id, signed.claim.plan);
        RoundDispute memory d = RoundDispute(id, signed.author(), _party(), Ending.None, 0);
        if (d.worker == d.challenger) revert NotAllowed(d.challenger);
        bytes32 claim = signed.claim.digest();
        _requireAnnounced(id, keccak256(abi.encode(claim, keccak256(opening.payload))));
        uint32 earlier = bonds.accuse(id, d.worker);
        d.bond = _bond(t, t.coordinator == d.worker ? t.keeperStake : t.stake, earlier);
        if (d.bond > opening.mostBond) revert BondTooHigh(d.bond);
        vault.lock(id, d.challenger, d.bond);
        number = game.start(_params(t, d, signed.claim, _open[id][d.worker]++), opening.header, opening.payload);
        _disputes[number] = d;
        emit ClaimDisputed(id, number, d.challenger, d.worker, claim, d.bond, signed);
    }

    /// @inheritdoc IDisputeResolver
    function onResolved(uint256 number, bool asserterWon) external only(address(game)) {
        RoundDispute storage d = _existing(number);
        if (d.ending == Ending.None) d.ending = asserterWon ? Ending.Stood : Ending.Fell;
    }

    /// @notice Pays out a dispute that has ended, or whose worker has lost its stake otherwise. Anybody.
    // Desks, game and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function settle(uint256 number) external {
        RoundDispute storage d = _existing(number);
        (bytes32 id, Ending ending) = (d.id, d.ending);
        bool moot = bonds.bond(id, d.worker).standing == Standing.Slashed;
        if (ending == Ending.Settled || (ending == Ending.None && !moot)) revert NothingToSettle(number);
        d.ending = Ending.Settled;
        emit ClaimDecided(id, number, ending, moot);
        --_open[id][d.worker];
        bonds.conclude(id, d.worker, false);
        if (moot || ending == Ending.Fell) {
            vault.unlock(id, d.challenger, d.bond);
            if (!moot && !bonds.slash(id, d.worker, d.challenger, d.bond)) revert NothingToSettle(number);
        } else {
            uint256 share = Split.down(d.bond, Split.WINNER_OF_BOND);
            vault.forfeit(id, d.challenger, d.bond);
            vault.pay(id, d.worker, share);
            vault.pay(id, bonds.treasury(), d.bond - share);
        }
    }

    /// @notice A dispute; zeros if there is none.
    function disputeOf(uint256 number) external view returns (RoundDispute memory) {
        return _disputes[number];
    }

    /// @notice What the next dispute about a claim of this worker costs: each doubles it, up to the least that a
    /// challenger wins if it is right, or to the first bond if that is more.
    function bondOf(bytes32 id, address worker) external view returns (uint256) {
        PlanTerms memory t = bonds.terms(id);
        return _bond(t, t.coordinator == worker ? t.keeperStake : t.stake, bonds.bond(id, worker).accusations);
    }

    function _params(PlanTerms memory t, RoundDispute memory d, RoundClaim calldata claim, uint256 open)
        private
        pure
        returns (StartParams memory p)
    {
        (p.asserter, p.challenger, p.kind) = (d.worker, d.challenger, KIND_REPLAY);
        (p.program, p.constants) = (claim.program, claim.constants);
        (p.firstStep, p.steps) = (claim.firstStep, claim.steps);
        (p.start, p.end) = (claim.start, claim.end);
        // An honest worker executes one claim after the other.
        uint256 time = uint256(t.clock) * (open + 1);
        p.clock = uint32(time < MOST_TIME ? time : MOST_TIME);
    }

    function _bond(PlanTerms memory t, uint256 stake, uint256 earlier) private view returns (uint256) {
        return Split.objectionBond(2 * _priceOf(t, DEFENSE_GAS), stake, earlier);
    }

    /// @dev Whoever disputes is somebody.
    function _existing(uint256 number) private view returns (RoundDispute storage d) {
        d = _disputes[number];
        if (d.challenger == address(0)) revert UnknownDispute(number);
    }
}
