// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Auction} from "../../../contracts/incentives/Auction.sol";
import {Jackpot} from "../../../contracts/incentives/Jackpot.sol";
import {Sortition} from "../../../contracts/incentives/Sortition.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Challenges} from "../../../contracts/market/Challenges.sol";
import {Counterclaims} from "../../../contracts/market/Counterclaims.sol";
import {DataDemands} from "../../../contracts/market/DataDemands.sol";
import {Market, MarketDesk} from "../../../contracts/market/MarketDesk.sol";
import {Objections} from "../../../contracts/market/Objections.sol";
import {Profiles} from "../../../contracts/market/Profiles.sol";
import {ProofRegistry} from "../../../contracts/market/ProofRegistry.sol";
import {ProvenSteps} from "../../../contracts/market/ProvenSteps.sol";
import {Seats} from "../../../contracts/market/Seats.sol";
import {Settlement} from "../../../contracts/market/Settlement.sol";
import {TaskRegistry} from "../../../contracts/market/TaskRegistry.sol";
import {Verdicts} from "../../../contracts/market/Verdicts.sol";
import {VectorHash} from "../../../contracts/zk/VectorHash.sol";
import {Base} from "../Base.sol";
import {IBeacon, ToyBeacon, ToyGame} from "./Toys.sol";

/// @notice The desks of a market, with a beacon and games that do as a test says, and accounts that can pay.
abstract contract MarketDeployment is Base {
    uint32 internal constant RATE = 1 << 30;
    uint128 internal constant UNIT = 0.5 ether;
    uint32 internal constant WATCHERS = 2;
    uint32 internal constant SHARES = 4;
    uint32 internal constant COMMIT_WINDOW = 2 minutes;
    uint32 internal constant CATCH_WINDOW = 1 hours;
    uint32 internal constant WINDOW = 10 minutes;
    uint128 internal constant PRICE = 0.01 ether;
    uint64 internal constant EXIT_DELAY = 120 days;
    uint256 internal constant START = 1_000 ether;

    StakeVault internal vault;
    Sortition internal sortition;
    Jackpot internal jackpot;
    Auction internal auction;
    TaskRegistry internal registry;
    Seats internal seats;
    ProofRegistry internal proofs;
    Profiles internal profiles;
    Verdicts internal verdicts;
    Challenges internal challenges;
    Objections internal objections;
    Counterclaims internal counterclaims;
    ProvenSteps internal provenSteps;
    DataDemands internal demands;
    Settlement internal settlement;
    ToyBeacon internal toyBeacon;
    IBeacon internal beacon;
    ToyGame internal game;
    ToyGame internal profileGame;
    ToyGame internal objectionGame;
    ToyGame internal counterclaimGame;
    address internal submitter = account("submitter");
    address internal solver = account("solver");
    address internal verifier = account("verifier");
    address internal nextVerifier = account("next verifier");
    address internal challenger = account("challenger");
    address internal watcher = account("watcher");
    address internal donor = account("donor");
    address internal treasury = account("treasury");
    mapping(address account => uint256 free) private _before;

    /// @dev Hashes vectors, where a test has some.
    function _hasher() internal virtual returns (VectorHash) {
        return VectorHash(address(0));
    }

    function _deploy(IBeacon by) internal {
        beacon = by;
        game = new ToyGame();
        profileGame = new ToyGame();
        objectionGame = new ToyGame();
        counterclaimGame = new ToyGame();
        vault = new StakeVault(address(0), EXIT_DELAY, address(0), address(this));
        sortition = new Sortition(vault, UNIT, WATCHERS);
        jackpot = new Jackpot(vault, sortition, SHARES, RATE, COMMIT_WINDOW, CATCH_WINDOW);
        auction = new Auction(vault, address(jackpot), jackpot.FUND(), type(uint128).max, 4);
        registry = new TaskRegistry(vault);
        seats = new Seats(vault, by);
        proofs = new ProofRegistry(vault, by);
        profiles = new Profiles(vault);
        verdicts = new Verdicts(vault, by, RATE);
        provenSteps = new ProvenSteps(vault, _hasher());
        challenges = new Challenges(vault, provenSteps);
        objections = new Objections(vault, provenSteps, PRICE);
        counterclaims = new Counterclaims(vault);
        demands = new DataDemands(vault, WINDOW, PRICE);
        settlement = new Settlement(vault, treasury);
        _wire();
    }

    function _wire() private {
        Market memory m = Market({
            registry: registry,
            auction: auction,
            seats: seats,
            proofs: proofs,
            profiles: profiles,
            verdicts: verdicts,
            challenges: challenges,
            objections: objections,
            counterclaims: counterclaims,
            demands: demands,
            settlement: settlement,
            sortition: sortition,
            jackpot: jackpot,
            game: game,
            profileGame: profileGame,
            objectionGame: objectionGame,
            counterclaimGame: counterclaimGame
        });
        MarketDesk[10] memory desks = [
            MarketDesk(registry),
            seats,
            proofs,
            profiles,
            verdicts,
            challenges,
            objections,
            counterclaims,
            demands,
            settlement
        ];
        for (uint256 i = 0; i < desks.length; ++i) {
            desks[i].wire(m);
        }
        provenSteps.wire(m);
        address[] memory reserving = new address[](1);
        reserving[0] = address(registry);
        jackpot.wire(verdicts, reserving);
        address[] memory all = new address[](13);
        for (uint256 i = 0; i < desks.length; ++i) {
            all[i] = address(desks[i]);
        }
        (all[10], all[11], all[12]) = (address(sortition), address(jackpot), address(auction));
        vault.wire(all);
    }

    function _endow() internal {
        address[7] memory accounts = [submitter, solver, verifier, nextVerifier, challenger, watcher, donor];
        for (uint256 i = 0; i < accounts.length; ++i) {
            vm.deal(accounts[i], START);
            vm.prank(accounts[i]);
            vault.deposit{value: START}(accounts[i], START);
        }
        vm.prank(donor);
        jackpot.donate(100 ether);
        _enrol(verifier, 2);
        _enrol(nextVerifier, 1);
        _enrol(watcher, 1);
        _pass(1);
        for (uint256 i = 0; i < accounts.length; ++i) {
            _before[accounts[i]] = vault.free(accounts[i]);
        }
    }

    function _enrol(address who, uint32 tickets) internal {
        vm.prank(who);
        sortition.enrol(tickets);
    }

    function _pass(uint256 time) internal {
        vm.warp(vm.getBlockTimestamp() + time);
    }

    /// @dev What `account` has more than at the start, in the vault.
    function _gain(address who) internal view returns (int256) {
        return int256(vault.free(who)) - int256(_before[who]);
    }
}
