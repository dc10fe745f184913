// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk} from "../incentives/Desk.sol";
import {IAuction} from "../incentives/IAuction.sol";
import {IJackpot} from "../incentives/IJackpot.sol";
import {ISortition} from "../incentives/ISortition.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {IDisputeGame} from "../dispute/IDisputeGame.sol";
import {IChallenges} from "./IChallenges.sol";
import {ICounterclaims} from "./ICounterclaims.sol";
import {IDataDemands} from "./IDataDemands.sol";
import {IObjections} from "./IObjections.sol";
import {IProfiles} from "./IProfiles.sol";
import {IProofRegistry} from "./IProofRegistry.sol";
import {ISeats} from "./ISeats.sol";
import {ISettlement} from "./ISettlement.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {IVerdicts} from "./IVerdicts.sol";
import {Status, Task} from "./TaskTypes.sol";

/// @notice The desks of one market.
struct Market {
    ITaskRegistry registry;
    IAuction auction;
    ISeats seats;
    IProofRegistry proofs;
    IProfiles profiles;
    IVerdicts verdicts;
    IChallenges challenges;
    IObjections objections;
    ICounterclaims counterclaims;
    IDataDemands demands;
    ISettlement settlement;
    ISortition sortition;
    IJackpot jackpot;
    IDisputeGame game; // of the verdicts
    IDisputeGame profileGame; // a game has one resolver, so the disputes about profiles have one of their own
    IDisputeGame objectionGame; // and so have those about what no verifier draws,
    IDisputeGame counterclaimGame; // by equal roots and by thresholds
}

/// @title MarketDesk
/// @notice What all desks of the market share: they know each other, tasks and times.
abstract contract MarketDesk is Desk {
    /// @dev The longest clock that a game takes; longer than any window.
    uint256 private constant MOST_TIME = type(uint24).max;

    ITaskRegistry public registry;
    IAuction public auction;
    ISeats public seats;
    IProofRegistry public proofs;
    IProfiles public profiles;
    IVerdicts public verdicts;
    IChallenges public challenges;
    IObjections public objections;
    ICounterclaims public counterclaims;
    IDataDemands public demands;
    ISettlement public settlement;
    ISortition public sortition;
    IJackpot public jackpot;

    constructor(IStakeVault vault_) Desk(vault_) {}

    /// @notice Names the desks, by the deployer and once.
    function wire(Market calldata m) external wiring {
        registry = m.registry;
        auction = m.auction;
        seats = m.seats;
        proofs = m.proofs;
        profiles = m.profiles;
        verdicts = m.verdicts;
        challenges = m.challenges;
        objections = m.objections;
        counterclaims = m.counterclaims;
        demands = m.demands;
        settlement = m.settlement;
        sortition = m.sortition;
        jackpot = m.jackpot;
        _wired(m);
    }

    /// @dev What else a desk has to know.
    function _wired(Market calldata m) internal virtual {}

    /// @dev What `account` has locked here goes to the settlement, which splits it.
    function _slash(bytes32 taskId, address account, uint256 amount, address party, uint256 points) internal {
        if (amount == 0) return;
        vault.forfeit(taskId, account, amount);
        vault.move(taskId, address(settlement), taskId, amount);
        settlement.split(taskId, amount, party, points);
    }

    /// @dev An honest party executes one segment after the other: it has the time of the terms for each dispute.
    /// @param open Others that are open.
    function _queued(uint32 time, uint256 open) internal pure returns (uint32) {
        uint256 all = uint256(time) * (open + 1);
        return uint32(all < MOST_TIME ? all : MOST_TIME);
    }

    function _expect(bytes32 taskId, Status status) internal view returns (Task memory t) {
        t = registry.task(taskId);
        if (t.status != status) revert ITaskRegistry.WrongStatus(taskId, t.status);
    }

    function _requireParty(address account) internal view returns (address party) {
        party = _party();
        if (party != account) revert NotAllowed(party);
    }

    function _requireOther(address account) internal view returns (address party) {
        party = _party();
        if (party == account) revert NotAllowed(party);
    }

    function _from(uint32 window) internal view returns (uint64) {
        return uint64(block.timestamp) + window;
    }

    function _notAfter(uint64 deadline) internal view {
        if (block.timestamp > deadline) revert ITaskRegistry.DeadlinePassed(deadline);
    }

    function _after(uint64 deadline) internal view {
        if (block.timestamp <= deadline) revert ITaskRegistry.DeadlineNotPassed(deadline);
    }
}
