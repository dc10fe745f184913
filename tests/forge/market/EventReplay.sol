// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {KIND_REPLAY} from "../../../contracts/dispute/DisputeKinds.sol";
import {Announcements} from "../../../contracts/market/Announcements.sol";
import {Contested, Dispute, IChallenges} from "../../../contracts/market/IChallenges.sol";
import {Contest, Counterclaim, ICounterclaims} from "../../../contracts/market/ICounterclaims.sol";
import {DataDemand, IDataDemands, Waiting} from "../../../contracts/market/IDataDemands.sol";
import {IObjections, Objection, ObjectionCount} from "../../../contracts/market/IObjections.sol";
import {IProfiles} from "../../../contracts/market/IProfiles.sol";
import {IProofRegistry, ProofOfTask} from "../../../contracts/market/IProofRegistry.sol";
import {ISeats, Seating} from "../../../contracts/market/ISeats.sol";
import {ISettlement} from "../../../contracts/market/ISettlement.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {IVerdicts, Verdict} from "../../../contracts/market/IVerdicts.sol";
import {Charge, Portion, Profile, ProfileDispute, Rerun, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {Claim, Ending, Outcome, Status, Task, Terms} from "../../../contracts/market/TaskTypes.sol";
import {Vm} from "../Base.sol";

/// @notice A bot that lost its disk: rebuilds what all desks store from nothing but events, in their order.
/// @dev A log is replayed in the second of its block: some times are those of the block alone.
contract EventReplay {
    mapping(address account => uint256) public free;
    mapping(address desk => mapping(bytes32 digest => uint256)) public announcedAt;
    mapping(bytes32 taskId => Task) private _tasks;
    mapping(bytes32 taskId => Terms) private _terms;
    mapping(bytes32 taskId => Seating) private _seatings;
    mapping(bytes32 taskId => ProofOfTask) private _proofs;
    mapping(bytes32 taskId => Verdict) private _verdicts;
    mapping(bytes32 taskId => Contested) private _contested;
    mapping(bytes32 taskId => Profile) private _profiles;
    mapping(bytes32 taskId => Waiting) private _waiting;
    mapping(bytes32 taskId => address[2]) private _unserved;
    mapping(bytes32 key => DataDemand) private _demands;
    mapping(uint256 number => Dispute) private _disputes;
    mapping(uint256 number => ProfileDispute) private _profileDisputes;
    mapping(bytes32 taskId => ObjectionCount) private _objected;
    mapping(uint256 number => Objection) private _objections;
    mapping(uint256 number => Counterclaim) private _counterclaims;
    mapping(uint256 dispute => Contest) private _contests;
    mapping(bytes32 taskId => mapping(uint32 seating => mapping(uint32 index => bytes32))) private _claims;
    mapping(bytes32 taskId => mapping(uint32 seating => mapping(uint32 index => bytes32))) private _looks;

    function terms(bytes32 taskId) external view returns (Terms memory) {
        return _terms[taskId];
    }

    /// @notice All that is known of a task, in the order of the desks.
    function known(bytes32 taskId) external view returns (bytes memory) {
        Contested memory c = _contested[taskId];
        if (c.seating != _tasks[taskId].seating) c = Contested(_tasks[taskId].seating, 0, 0, false);
        return abi.encode(
            _tasks[taskId],
            _seatings[taskId],
            _proofs[taskId],
            _verdicts[taskId],
            c,
            _profiles[taskId],
            _waiting[taskId],
            _count(taskId),
            _unserved[taskId]
        );
    }

    function isOpen(bytes32 key) external view returns (bool) {
        return _demands[key].deadline != 0;
    }

    function dispute(uint256 number) external view returns (Dispute memory) {
        return _disputes[number];
    }

    /// @notice All that is known of disputes and counterclaims of one number, in the order of the desks.
    function disputed(uint256 number) external view returns (bytes memory) {
        return abi.encode(
            _disputes[number], _profileDisputes[number], _objections[number], _counterclaims[number], _contests[number]
        );
    }

    function replay(Vm.Log calldata log) external {
        if (_vault(log) || log.topics.length < 2) return;
        bytes32 id = log.topics[1];
        if (log.topics[0] == Announcements.Announced.selector) {
            announcedAt[log.emitter][id] = abi.decode(log.data, (uint256));
            return;
        }
        if (_word(log, id) || _task(log, id) || _seat(log, id) || _proof(log, id)) return;
        if (_verdict(log, id) || _dispute(log, id) || _data(log, id)) return;
        if (_objection(log, id) || _counterclaim(log, id) || _contest(log, id)) return;
        _profile(log, id, _profiles[id]);
    }

    function _word(Vm.Log calldata log, bytes32 id) private returns (bool) {
        address[2] storage said = _unserved[id];
        if (log.topics[0] == ISettlement.WordEnded.selector) {
            delete _unserved[id];
            return true;
        }
        if (log.topics[0] != ISettlement.Unserved.selector) return false;
        said[said[0] == address(0) ? 0 : 1] = _address(log.topics[3]);
        return true;
    }

    /// @notice The game of the verdicts has ended a dispute.
    function ended(uint256 number, bool asserterWon) public {
        Dispute storage d = _disputes[number];
        Contested storage c = _contested[d.taskId];
        if (d.ending != Ending.None) return;
        if (asserterWon) d.ending = Ending.Stood;
        else if (c.seating == d.seating && !c.fell) (d.ending, c.fell) = (Ending.Fell, true);
    }

    /// @notice The game of the profiles has ended a dispute.
    function endedProfile(uint256 number, bool asserterWon) external {
        ProfileDispute storage d = _profileDisputes[number];
        Profile storage p = _profiles[d.taskId];
        if (d.ending != Ending.None) return;
        if (asserterWon) d.ending = Ending.Stood;
        else if (p.verifier != address(0) && p.number == d.profile && !p.fell) (d.ending, p.fell) = (Ending.Fell, true);
    }

    /// @notice The game of objections has ended a dispute.
    function endedObjection(uint256 number, bool asserterWon) public {
        Objection storage o = _objections[number];
        ObjectionCount storage c = _objected[o.taskId];
        if (o.ending != Ending.None) return;
        if (asserterWon) o.ending = Ending.Stood;
        else if (!c.fell) (o.ending, c.fell) = (Ending.Fell, true);
    }

    /// @notice The game of counterclaims has ended a dispute.
    function endedContest(uint256 number, bool asserterWon) external {
        Contest storage d = _contests[number];
        Counterclaim storage c = _counterclaims[d.counterclaim];
        if (d.ending != Ending.None) return;
        if (asserterWon) d.ending = Ending.Stood;
        else if (!c.fell && !c.concluded) (d.ending, c.fell) = (Ending.Fell, true);
    }

    function _vault(Vm.Log calldata log) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        if (topic == IStakeVault.Deposited.selector) {
            free[_address(log.topics[2])] += abi.decode(log.data, (uint256));
        } else if (topic == IStakeVault.Withdrawn.selector) {
            free[_address(log.topics[1])] -= abi.decode(log.data, (uint256));
        } else if (topic == IStakeVault.Locked.selector) {
            free[_address(log.topics[3])] -= abi.decode(log.data, (uint256));
        } else if (
            topic == IStakeVault.Unlocked.selector || topic == IStakeVault.Left.selector
                || topic == IStakeVault.Paid.selector
        ) {
            free[_address(log.topics[3])] += abi.decode(log.data, (uint256));
        } else {
            return false;
        }
        return true;
    }

    function _task(Vm.Log calldata log, bytes32 id) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        Task storage t = _tasks[id];
        if (topic == ITaskRegistry.TaskSubmitted.selector) {
            (, _terms[id],) = abi.decode(log.data, (uint256, Terms, uint256));
            t.submitter = _address(log.topics[2]);
        } else if (topic == ITaskRegistry.Advanced.selector) {
            (t.status, t.deadline) = abi.decode(log.data, (Status, uint64));
            if (t.status == Status.Committed || t.status == Status.Bidding) delete _verdicts[id];
        } else if (topic == ITaskRegistry.Seated.selector) {
            (t.seating, t.holder) = (abi.decode(log.data, (uint32)), _address(log.topics[2]));
        } else if (topic == ITaskRegistry.Awarded.selector) {
            (t.price,) = abi.decode(log.data, (uint128, uint64));
            (t.solver, t.began) = (_address(log.topics[2]), uint64(block.timestamp));
        } else if (topic == ITaskRegistry.SolverGone.selector) {
            (t.solver, t.price, t.began) = (address(0), 0, 0);
        } else if (topic == ITaskRegistry.TaskClosed.selector) {
            (t.outcome, t.closed) = (abi.decode(log.data, (Outcome)), uint64(block.timestamp));
        } else {
            return false;
        }
        return true;
    }

    function _seat(Vm.Log calldata log, bytes32 id) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        Seating storage s = _seatings[id];
        if (topic == ISeats.SeatOpened.selector) {
            uint32 number = uint32(uint256(log.topics[2]));
            if (s.number != number) delete _seatings[id];
            (s.number, s.until, s.seed) = (number, 0, 0);
            (s.verifies, s.round, s.fixedAt, s.stake) = abi.decode(log.data, (bool, uint64, uint64, uint128));
        } else if (topic == ISeats.ClaimsOpened.selector) {
            (s.seed, s.until) = abi.decode(log.data, (bytes32, uint64));
        } else if (topic == ISeats.SeatClaimed.selector) {
            (, s.rank, s.commitment) = abi.decode(log.data, (uint32, uint256, bytes32));
            s.best = _address(log.topics[3]);
        } else if (topic == ISeats.SeatTaken.selector) {
            (s.dutyRound, s.dutyFixedAt) = abi.decode(log.data, (uint64, uint64));
            s.holder = _address(log.topics[3]);
        } else if (topic == ISeats.SeatLeft.selector) {
            s.left = true;
        } else {
            return false;
        }
        return true;
    }

    function _proof(Vm.Log calldata log, bytes32 id) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        ProofOfTask storage p = _proofs[id];
        bool progress = topic == IProofRegistry.ProgressPosted.selector;
        if (progress || topic == IProofRegistry.ProofCommitted.selector) {
            if (p.began != _tasks[id].began) delete _proofs[id];
            p.began = _tasks[id].began;
            if (progress) {
                (p.size, p.root) = abi.decode(log.data, (uint64, bytes32));
            } else {
                (p.size, p.root,, p.round) = abi.decode(log.data, (uint64, bytes32, bytes32, uint64));
                p.committed = uint64(block.timestamp);
            }
        } else if (topic == IProofRegistry.RoundReplaced.selector) {
            (p.round, p.committed) = (abi.decode(log.data, (uint64)), uint64(block.timestamp));
        } else {
            return false;
        }
        return true;
    }

    function _verdict(Vm.Log calldata log, bytes32 id) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        Verdict storage v = _verdicts[id];
        uint32 number = log.topics.length > 2 ? uint32(uint256(log.topics[2])) : 0;
        if (topic == IVerdicts.ClaimPosted.selector) {
            (uint32 index, Claim memory claim) = abi.decode(log.data, (uint32, Claim));
            _claims[id][number][index] = keccak256(abi.encode(claim));
        } else if (topic == IVerdicts.LookPosted.selector) {
            (uint32 index, Rerun[] memory reruns) = abi.decode(log.data, (uint32, Rerun[]));
            _looks[id][number][index] = keccak256(abi.encode(reruns));
        } else if (topic == IVerdicts.VerdictPosted.selector) {
            uint32 differing;
            (v.rejecting, differing, v.sealedClaim) = abi.decode(log.data, (uint32, uint32, bytes32));
            v.differing = uint8(differing);
            (v.seating, v.verifier, v.claims) = (number, _address(log.topics[3]), _hash(id, number));
        } else if (topic == IVerdicts.WatchFixed.selector) {
            (v.watchRound, v.watchFixedAt) = abi.decode(log.data, (uint64, uint64));
        } else if (topic == IVerdicts.WatchOpened.selector) {
            (, v.watchUntil) = abi.decode(log.data, (bytes32, uint64));
        } else if (topic == IVerdicts.Disclosed.selector) {
            uint32 differing;
            (,,, v.rejecting, differing,) = abi.decode(log.data, (bytes32, bool, uint32, uint32, uint32, uint64));
            (v.disclosed, v.differing, v.claims) = (true, uint8(differing), _hash(id, number));
        } else if (topic == IVerdicts.DutyBroken.selector) {
            if (_tasks[id].status == Status.Watched) v.leaked = true;
        } else {
            return false;
        }
        return true;
    }

    function _dispute(Vm.Log calldata log, bytes32 id) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        Contested storage c = _contested[id];
        if (topic == IChallenges.Challenged.selector) {
            _challenged(log, id, c);
        } else if (topic == IChallenges.SettledByProof.selector) {
            ended(uint256(log.topics[3]), abi.decode(log.data, (bool)));
        } else if (topic == IChallenges.DisputeSettled.selector) {
            _disputes[uint256(log.topics[3])].ending = Ending.Settled;
            --c.open;
        } else if (topic == IChallenges.DisputeMoot.selector) {
            Dispute storage d = _disputes[uint256(log.topics[3])];
            d.ending = Ending.Settled;
            if (_tasks[id].status == Status.Contested && _tasks[id].seating == d.seating) --c.open;
        } else {
            return false;
        }
        return true;
    }

    function _challenged(Vm.Log calldata log, bytes32 id, Contested storage c) private {
        uint32 seating = uint32(uint256(log.topics[2]));
        (uint256 number, Dispute memory d) = _charged(log.data);
        (d.taskId, d.challenger, d.seating) = (id, _address(log.topics[3]), seating);
        _disputes[number] = d;
        if (c.seating != seating) (c.seating, c.challenges, c.open, c.fell) = (seating, 0, 0, false);
        ++c.challenges;
        ++c.open;
    }

    function _charged(bytes calldata data) private pure returns (uint256 number, Dispute memory d) {
        uint8 kind;
        uint256 bond;
        (number, d.index, kind,, bond) = abi.decode(data, (uint256, uint32, uint8, uint8, uint256));
        (d.ofReplay, d.bond) = (kind == KIND_REPLAY, uint128(bond));
    }

    /// @dev Of the present solver of a task.
    function _count(bytes32 id) private view returns (ObjectionCount memory c) {
        c = _objected[id];
        if (c.began != _tasks[id].began) c = ObjectionCount(_tasks[id].began, 0, 0, false);
    }

    function _objection(Vm.Log calldata log, bytes32 id) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        if (topic == IObjections.Objected.selector) {
            (uint256 number, uint32 segment, uint256 bond) = abi.decode(log.data, (uint256, uint32, uint256));
            uint64 began = uint64(uint256(log.topics[2]));
            address objector = _address(log.topics[3]);
            _objections[number] = Objection(id, objector, began, segment, Ending.None, uint128(bond));
            _admit(id, began);
        } else if (topic == IObjections.ObjectionProven.selector) {
            endedObjection(uint256(log.topics[3]), abi.decode(log.data, (bool)));
        } else if (topic == IObjections.ObjectionSettled.selector || topic == IObjections.ObjectionMoot.selector) {
            _objections[uint256(log.topics[3])].ending = Ending.Settled;
            --_objected[id].open;
        } else if (topic == IObjections.ZeroShown.selector) {
            _objected[id] = _count(id);
            _objected[id].fell = true;
        } else {
            return false;
        }
        return true;
    }

    function _admit(bytes32 id, uint64 began) private {
        ObjectionCount storage c = _objected[id];
        if (c.began != began) (c.began, c.objections, c.open, c.fell) = (began, 0, 0, false);
        ++c.objections;
        ++c.open;
    }

    function _counterclaim(Vm.Log calldata log, bytes32 id) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        if (topic == ICounterclaims.Counterclaimed.selector) {
            Counterclaim storage c = _counterclaims[uint256(log.topics[2])];
            (c.taskId, c.objector) = (id, _address(log.topics[3]));
            _said(c, log.data);
            _admit(id, c.began);
        } else if (topic == ICounterclaims.CounterclaimConcluded.selector) {
            _counterclaims[uint256(log.topics[2])].concluded = true;
            --_objected[id].open;
            if (abi.decode(log.data, (bool))) _objected[id].fell = true;
        } else {
            return false;
        }
        return true;
    }

    function _said(Counterclaim storage c, bytes calldata data) private {
        (uint64 began, Claim memory claim, Rerun[] memory look, uint64 until, uint256 bond) =
            abi.decode(data, (uint64, Claim, Rerun[], uint64, uint256));
        bytes32 hash = look.length == 0 ? bytes32(0) : keccak256(abi.encode(look));
        c.entry = keccak256(abi.encode(keccak256(abi.encode(claim)), hash));
        (c.began, c.until, c.bond) = (began, until, uint128(bond));
    }

    function _contest(Vm.Log calldata log, bytes32 id) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        if (topic == ICounterclaims.Contested.selector) {
            (uint256 number,,,, uint256 bond) = abi.decode(log.data, (uint256, uint8, uint8, uint32, uint256));
            uint256 about = uint256(log.topics[2]);
            address challenger = _address(log.topics[3]);
            _contests[number] = Contest(uint64(about), challenger, Ending.None, uint128(bond));
            ++_counterclaims[about].open;
            if (challenger == _tasks[id].solver) _counterclaims[about].answered = true;
        } else if (topic == ICounterclaims.ContestSettled.selector || topic == ICounterclaims.ContestMoot.selector) {
            _contests[uint256(log.topics[3])].ending = Ending.Settled;
            --_counterclaims[uint256(log.topics[2])].open;
        } else {
            return false;
        }
        return true;
    }

    function _data(Vm.Log calldata log, bytes32 id) private returns (bool known_) {
        bytes32 topic = log.topics[0];
        Waiting storage w = _waiting[id];
        if (topic == IDataDemands.Demanded.selector) {
            DataDemand memory d = abi.decode(log.data, (DataDemand));
            _demands[log.topics[2]] = d;
            if (w.began != d.began) (w.began, w.open) = (d.began, 0);
            ++w.open;
            Task storage t = _tasks[id];
            if (t.status == Status.Verifying && t.holder == d.demander) w.extended = t.seating;
        } else if (topic == IDataDemands.Answered.selector || topic == IDataDemands.Expired.selector) {
            if (w.began == _demands[log.topics[2]].began) --w.open;
            delete _demands[log.topics[2]];
        } else {
            return false;
        }
        return true;
    }

    function _profile(Vm.Log calldata log, bytes32 id, Profile storage p) private {
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
            _profileDisputes[number] = ProfileDispute(id, _address(log.topics[3]), about, Ending.None, uint128(bond));
            ++p.challenges;
            ++p.open;
        } else if (topic == IProfiles.ProfileDisputeSettled.selector) {
            _profileDisputes[uint256(log.topics[3])].ending = Ending.Settled;
            --p.open;
        } else if (topic == IProfiles.ProfileDisputeMoot.selector) {
            ProfileDispute storage d = _profileDisputes[uint256(log.topics[3])];
            d.ending = Ending.Settled;
            if (p.verifier != address(0) && p.number == d.profile) --p.open;
        } else if (topic == IProfiles.ProfileConcluded.selector) {
            p.concluded = true;
        } else if (topic == IProfiles.ProfileGone.selector) {
            delete _profiles[id];
            p.number = uint32(uint256(log.topics[2]));
        }
    }

    /// @dev Of all entries of a verdict.
    function _hash(bytes32 id, uint32 number) private view returns (bytes32) {
        bytes32[] memory entries = new bytes32[](_terms[id].draws);
        for (uint32 i = 0; i < entries.length; ++i) {
            entries[i] = keccak256(abi.encode(_claims[id][number][i], _looks[id][number][i]));
        }
        return keccak256(abi.encodePacked(entries));
    }

    function _address(bytes32 topic) private pure returns (address) {
        return address(uint160(uint256(topic)));
    }
}
