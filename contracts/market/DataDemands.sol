// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {Piece, StateLeaf} from "../commitments/StateLeaf.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {DataDemand, IDataDemands, Waiting} from "./IDataDemands.sol";
import {ObjectionCount} from "./IObjections.sol";
import {ISettlement} from "./ISettlement.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {MarketDesk} from "./MarketDesk.sol";
import {ProofOfTask} from "./IProofRegistry.sol";
import {Status, Task} from "./TaskTypes.sol";

/// @title DataDemands
/// @notice See `IDataDemands`.
/// @dev One word for each open demand, no loop over demands. Bonds are locked under the task's id.
contract DataDemands is IDataDemands, MarketDesk {
    /// @notice Gas that a bond pays for, at the base fee of the demand: above that of answers of a usual size.
    uint256 public constant ANSWER_GAS = 200_000;
    uint32 private constant MIN_WINDOW = 1 minutes;
    uint32 private constant MAX_WINDOW = 14 days;

    /// @inheritdoc IDataDemands
    uint32 public immutable window;
    /// @notice What an answer costs on top of gas. Where the asset is a token it has to pay for the gas too: no rate is
    /// known here.
    uint128 public immutable price;
    bool private immutable paysGas;

    mapping(bytes32 taskId => Waiting) private _waiting;
    mapping(bytes32 key => bool) private _open;

    /// @param window_ Seconds for an answer: those whose solvers watch the chain, and everybody whose stake waits, live
    /// with it.
    constructor(IStakeVault vault_, uint32 window_, uint128 price_) MarketDesk(vault_) {
        if (window_ < MIN_WINDOW || window_ > MAX_WINDOW) revert InvalidWindow(window_);
        (window, price, paysGas) = (window_, price_, vault_.asset() == address(0));
    }

    /// @inheritdoc IDataDemands
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth
    function demand(bytes32 taskId, uint64 entry, uint32 position, uint32 leaf, uint256 mostBond)
        external
        returns (bytes32 key)
    {
        Task memory t = registry.task(taskId);
        if (t.status < Status.Committed || t.status > Status.Contested) {
            revert ITaskRegistry.WrongStatus(taskId, t.status);
        }
        // So what waits for demands waits for one window more, and no longer.
        if (t.deadline != 0) _notAfter(t.deadline);
        ProofOfTask memory p = proofs.proof(taskId);
        if (entry >= p.size) revert NoSuchEntry(entry, p.size);
        uint256 bond = bondOf();
        if (bond > mostBond) revert BondTooHigh(bond);
        DataDemand memory d = DataDemand(taskId, t.began, entry, position, leaf, _party(), _from(window), bond);
        key = keccak256(abi.encode(d));
        if (_open[key]) revert AlreadyDemanded(key);
        _open[key] = true;
        Waiting storage w = _waiting[taskId];
        if (w.began != t.began) (w.began, w.open) = (t.began, 0);
        ++w.open;
        emit Demanded(taskId, key, d);
        vault.lock(taskId, d.demander, bond);
        if (t.status == Status.Verifying && d.demander == t.holder && w.extended != t.seating) {
            w.extended = t.seating;
            registry.advance(taskId, Status.Verifying, Status.Verifying, t.deadline + window);
        }
    }

    /// @inheritdoc IDataDemands
    function answer(DataDemand calldata d, Piece calldata piece) external {
        (bytes32 key, Task memory t, bool moot) = _take(d);
        if (moot) revert Moot(key);
        _notAfter(d.deadline);
        // Whoever copies the solver's answer from the pool of transactions could earn the bond, or get back one of
        // their own.
        uint64 solversOwn = d.deadline - window / 2;
        address answerer = _party();
        if (block.timestamp <= solversOwn && answerer != t.solver) revert SolverFirst(solversOwn);
        bytes32 root = StateLeaf.root(piece, registry.program(d.taskId), d.position, d.leaf);
        ProofOfTask memory p = proofs.proof(d.taskId);
        if (!CheckpointLog.isIncluded(root, d.entry, p.size, p.root, piece.logPath)) revert NotInLog(root);
        emit Answered(d.taskId, key, answerer, root, piece.leaf, piece.logPath);
        vault.forfeit(d.taskId, d.demander, d.bond);
        vault.pay(d.taskId, answerer, d.bond);
    }

    /// @inheritdoc IDataDemands
    function expire(DataDemand calldata d) external {
        (bytes32 key, Task memory t, bool moot) = _take(d);
        emit Expired(d.taskId, key, !moot);
        vault.unlock(d.taskId, d.demander, d.bond);
        if (moot) return;
        _after(d.deadline);
        settlement.claimWithheld(d.taskId, d.demander, _requireDecided(d.taskId, t));
    }

    /// @inheritdoc IDataDemands
    function isOpen(bytes32 key) external view returns (bool) {
        return _open[key];
    }

    /// @inheritdoc IDataDemands
    function open(bytes32 taskId) external view returns (uint32) {
        Waiting storage w = _waiting[taskId];
        return w.began == registry.task(taskId).began ? w.open : 0;
    }

    /// @inheritdoc IDataDemands
    function waiting(bytes32 taskId) external view returns (Waiting memory) {
        return _waiting[taskId];
    }

    /// @inheritdoc IDataDemands
    function bondOf() public view returns (uint256) {
        return price + (paysGas ? ANSWER_GAS * block.basefee : 0);
    }

    /// @dev Ends an open demand; whatever reverts later brings it back.
    function _take(DataDemand calldata d) private returns (bytes32 key, Task memory t, bool moot) {
        key = keccak256(abi.encode(d));
        if (!_open[key]) revert NoSuchDemand(key);
        delete _open[key];
        Waiting storage w = _waiting[d.taskId];
        if (w.began == d.began) --w.open;
        t = registry.task(d.taskId);
        moot = t.began != d.began || t.status == Status.Closed;
    }

    /// @dev Nobody escapes a duty or a dispute because data is withheld, and a rejected solver saves nothing by it: a
    /// verdict goes its way until it stands or falls.
    /// @return fell Whether a segment of the log is known to be false.
    function _requireDecided(bytes32 taskId, Task memory t) private view returns (bool fell) {
        ObjectionCount memory objected = objections.objected(taskId);
        if (objected.open > 0) revert ISettlement.DisputesOpen(objected.open);
        fell = objected.fell;
        if (t.status == Status.Watched) revert ITaskRegistry.WrongStatus(taskId, t.status);
        if (t.status != Status.Contested) return fell;
        _after(t.deadline);
        uint32 disputes = challenges.contested(taskId).open;
        if (disputes > 0) revert ISettlement.DisputesOpen(disputes);
        // What every replay has repeated is rejected as well.
        // slither-disable-next-line unused-return
        (bool accepted,,) = verdicts.conclude(taskId);
        if (!accepted || fell) revert SettleFirst(taskId);
    }
}
