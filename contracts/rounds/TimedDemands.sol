// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {Standing} from "./IWorkerBonds.sol";
import {PlanTerms} from "./PlanTypes.sol";
import {RoundDesk} from "./RoundDesk.sol";
import {RosterMembers, SignedRoster} from "./RosterMembers.sol";
import {RoundSignatures} from "./RoundSignatures.sol";
import {SignedText} from "./SignedText.sol";
import {RoundClaim, SignedHead} from "./RoundTypes.sol";

/// @notice A demand: the accused shows something in time, or has lost its stake.
struct RoundDemand {
    bytes32 id; // of the plan
    address accused;
    address demander;
    uint64 deadline; // last second for an answer
    uint256 bond; // the price of the longest answer
    bytes32 content; // hash of what is demanded
}

/// @notice An entry of the log, of a claim or of a roster.
struct LoggedEntry {
    bytes entry; // the document
    uint256 offset; // of the claim's signature in it, in hexadecimal digits
    uint64 index;
    SignedHead head;
    bytes32[] path;
}

/// @title TimedDemands
/// @notice Demands with a clock (docs/spec/rounds.md, "On a chain"): an answer earns its price, silence loses the
/// stake.
/// @dev One word for each open demand. Bonds are locked under the plan's id.
abstract contract TimedDemands is RoundDesk {
    using RoundSignatures for SignedHead;

    /// @notice Something is demanded.
    event Demanded(bytes32 indexed id, address indexed accused, bytes32 indexed key, RoundDemand demand);
    /// @notice A part of an answer: the document that the coordinator has signed for this round.
    event RosterShown(bytes32 indexed id, bytes32 indexed document, uint64 indexed round, bytes text, bytes signature);
    /// @notice It was shown.
    event Answered(bytes32 indexed id, bytes32 indexed key);
    /// @notice It wasn't; or, if `moot`, its accused had lost its stake by then.
    event Expired(bytes32 indexed id, bytes32 indexed key, bool moot);

    /// @notice No such demand is open, or it is open already.
    error NoSuchDemand(bytes32 key);
    /// @notice See `NoSuchDemand`.
    error AlreadyDemanded(bytes32 key);
    /// @notice The answer is to another demand.
    error OtherDemand(bytes32 content);
    /// @notice It was possible until `deadline`, or is possible after it.
    error DeadlinePassed(uint64 deadline);
    /// @notice See `DeadlinePassed`.
    error DeadlineNotPassed(uint64 deadline);
    /// @notice The entry isn't in the log of this head, or doesn't hold the claim's signature.
    error NotLogged();

    /// @dev Gas that a bond pays for, at the base fee of the demand.
    uint256 internal constant ANSWER_GAS = 400_000;
    /// @dev Gas for a byte of a roster that an answer shows: calldata at its floor price, hash and event.
    uint256 private constant ROSTER_BYTE_GAS = 47;
    /// @dev Bytes of a roster that a bond pays for: about a thousand members.
    uint256 private constant ROSTER_BYTES = 124_000;
    /// @dev Of the longest answer that shows a roster.
    uint256 internal constant ROSTER_ANSWER_GAS = ANSWER_GAS + ROSTER_BYTE_GAS * ROSTER_BYTES;
    /// @notice Is this demand open?
    mapping(bytes32 key => bool) public isOpen;

    constructor(IStakeVault vault_) RoundDesk(vault_) {}

    /// @notice Ends a demand that wasn't answered in time, or whose accused has lost its stake otherwise. Anybody.
    function expire(RoundDemand calldata d) external {
        bytes32 key = keccak256(abi.encode(d));
        bool moot = _isSlashed(d);
        if (!moot && block.timestamp <= d.deadline) revert DeadlineNotPassed(d.deadline);
        emit Expired(d.id, key, moot);
        _take(d, key, false);
        vault.unlock(d.id, d.demander, d.bond);
        if (!moot && !bonds.slash(d.id, d.accused, d.demander, 0)) revert NoSuchDemand(key);
    }

    /// @notice The bond of a demand whose answer may show a roster, now. What the answer doesn't cost goes back.
    function rosterBondOf(bytes32 id) external view returns (uint256) {
        return _priceOf(bonds.terms(id), ROSTER_ANSWER_GAS);
    }

    /// @dev Opens a demand of the caller; what it is about is told by an event before, under `content`. Its bond pays
    /// for answers that take `answerGas`.
    function _demand(
        PlanTerms memory t,
        bytes32 id,
        address accused,
        bytes32 content,
        uint256 mostBond,
        uint256 answerGas
    ) internal returns (bytes32 key) {
        uint256 bond = _priceOf(t, answerGas);
        if (bond > mostBond) revert BondTooHigh(bond);
        RoundDemand memory d =
            RoundDemand(id, accused, _party(), uint64(block.timestamp) + t.answerWindow, bond, content);
        key = keccak256(abi.encode(d));
        if (isOpen[key]) revert AlreadyDemanded(key);
        isOpen[key] = true;
        emit Demanded(id, accused, key, d);
        // Returns how many there are, which bonds of demands don't depend on.
        // slither-disable-next-line unused-return
        bonds.accuse(id, accused);
        vault.lock(id, d.demander, bond);
    }

    /// @dev Ends a demand for `content` that the caller answers for the accused: `owed` of the bond is earned by that,
    /// if the accused has a stake to save. A slashed one would live on those who ask what else was false.
    function _answer(RoundDemand calldata d, bytes32 content, uint256 owed) internal {
        if (d.content != content) revert OtherDemand(d.content);
        if (block.timestamp > d.deadline) revert DeadlinePassed(d.deadline);
        bytes32 key = keccak256(abi.encode(d));
        emit Answered(d.id, key);
        _take(d, key, true);
        if (_isSlashed(d)) owed = 0;
        vault.forfeit(d.id, d.demander, owed);
        vault.pay(d.id, d.accused, owed);
        vault.unlock(d.id, d.demander, d.bond - owed);
    }

    /// @dev Shows the roster that a claim names to all; reverts unless the coordinator has signed it for the claim's
    /// round and with its author.
    function _showRoster(bytes32 id, PlanTerms memory t, RoundClaim calldata claim, SignedRoster calldata signed)
        internal
    {
        bytes32 document = RosterMembers.requireMember(id, t, claim.round, claim.worker, signed);
        if (document != claim.roster) revert RosterMembers.OtherRoster(document);
        emit RosterShown(id, document, claim.round, signed.text, signed.signature);
    }

    /// @dev What an answer that shows this roster has cost, at the base fee of the demand.
    function _owed(PlanTerms memory t, RoundDemand calldata d, bytes calldata roster) internal pure returns (uint256) {
        uint256 shown = SignedText.hasZero(roster) ? 0 : roster.length;
        uint256 paidFor = ANSWER_GAS + ROSTER_BYTE_GAS * (shown < ROSTER_BYTES ? shown : ROSTER_BYTES);
        return t.price + (d.bond - t.price) * paidFor / ROSTER_ANSWER_GAS;
    }

    /// @dev Reverts unless the log holds the claim with this digest, signed by this worker.
    function _requireLogged(bytes32 id, LoggedEntry calldata logged, bytes32 claim, address worker) internal view {
        SignedHead calldata head = logged.head;
        PlanTerms memory t = _termsFor(id, head.head.plan);
        _requireSigner(head.keeper(), t.coordinator);
        bytes32 hash = keccak256(logged.entry);
        if (!CheckpointLog.isIncluded(hash, logged.index, head.head.size, head.head.root, logged.path)) {
            revert NotLogged();
        }
        _requireSigner(RoundSignatures.signerInText(claim, logged.entry, logged.offset), worker);
    }

    /// @dev Ends an open demand; whatever reverts later brings it back.
    function _take(RoundDemand calldata d, bytes32 key, bool answered) private {
        if (!isOpen[key]) revert NoSuchDemand(key);
        delete isOpen[key];
        bonds.conclude(d.id, d.accused, answered);
    }

    function _isSlashed(RoundDemand calldata d) private view returns (bool) {
        return bonds.bond(d.id, d.accused).standing == Standing.Slashed;
    }
}
