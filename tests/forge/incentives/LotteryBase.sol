// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Forwarder} from "../../../contracts/incentives/Forwarder.sol";
import {IJackpot} from "../../../contracts/incentives/IJackpot.sol";
import {ISortition} from "../../../contracts/incentives/ISortition.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Base} from "../Base.sol";
import {Claim, Desk, ForcedErrors, IStakeVault, Jackpot, SeatingDesk, Sortition} from "./SeatingDesk.sol";

/// @notice A vault with tickets, a jackpot and a desk that takes tasks along their path.
abstract contract LotteryBase is Base {
    uint64 internal constant EXIT_DELAY = 30 days;
    uint128 internal constant UNIT = 1 ether;
    uint32 internal constant WATCHERS = 3;
    uint32 internal constant SHARES = 6;
    uint32 internal constant RATE = 1 << 30;
    uint32 internal constant COMMIT_WINDOW = 2 minutes;
    uint32 internal constant CATCH_WINDOW = 1 days;
    uint32 internal constant DRAWS = 4;
    bytes32 internal constant SALT = "salt";
    bytes32 internal constant SEED = "seed of the planted error";
    bytes32 internal constant WATCH_SEED = "seed of the watchers";

    Forwarder internal forwarder;
    StakeVault internal vault;
    Sortition internal sortition;
    Jackpot internal jackpot;
    SeatingDesk internal desk;
    address internal submitter = account("submitter");
    address internal solver = account("solver");
    address internal verifier = account("verifier");
    address internal alice = account("alice");
    address internal bob = account("bob");
    address internal mallory = account("mallory");

    function setUp() public virtual {
        vm.warp(1_000_000);
        forwarder = new Forwarder();
        vault = new StakeVault(address(0), EXIT_DELAY, address(forwarder), address(this));
        sortition = new Sortition(vault, UNIT, _watchers());
        jackpot = new Jackpot(vault, sortition, _shares(), RATE, COMMIT_WINDOW, CATCH_WINDOW);
        desk = new SeatingDesk(vault);
        address[] memory desks = new address[](1);
        desks[0] = address(desk);
        jackpot.wire(desk, desks);
        desk.wire(sortition, jackpot);
        desks = new address[](3);
        (desks[0], desks[1], desks[2]) = (address(sortition), address(jackpot), address(desk));
        vault.wire(desks);
    }

    function _watchers() internal pure virtual returns (uint32) {
        return WATCHERS;
    }

    function _shares() internal pure virtual returns (uint32) {
        return SHARES;
    }

    function _bring(address who, uint256 amount) internal {
        vm.deal(who, amount);
        vm.prank(who);
        vault.deposit{value: amount}(who, amount);
    }

    function _enrol(address who, uint32 count) internal {
        _bring(who, count * UNIT);
        vm.prank(who);
        sortition.enrol(count);
    }

    function _resign(address who, uint32 count) internal {
        vm.prank(who);
        sortition.resign(count);
    }

    function _donate(address who, uint256 amount) internal {
        _bring(who, amount);
        vm.prank(who);
        jackpot.donate(amount);
    }

    function _pass(uint256 time) internal {
        vm.warp(vm.getBlockTimestamp() + time);
    }

    function _now() internal view returns (uint64) {
        return uint64(vm.getBlockTimestamp());
    }

    /// @dev A secret of the verifier that does or doesn't force an error in this seating.
    function _secret(bytes32 taskId, uint32 seating, bool forced) internal pure returns (bytes32 secret) {
        for (uint256 i = 1; ForcedErrors.isForced(RATE, SEED, taskId, seating, secret = bytes32(i)) != forced; ++i) {}
    }

    /// @dev What the verifier has computed for a claim of any task.
    function _truth(uint32 index) internal pure returns (Claim memory claim) {
        claim.segment = 10 + index;
        claim.start = keccak256(abi.encode("start", index));
        claim.end = keccak256(abi.encode("end", index));
        claim.replay = keccak256(abi.encode("replay", index));
        claim.distances = [uint256(index), 2, 3];
        claim.references = [uint256(4), 5, index];
    }

    /// @dev Where this seating has its error.
    function _index(bytes32 taskId, uint32 seating, bytes32 secret) internal pure returns (uint32) {
        return ForcedErrors.index(SEED, taskId, seating, secret, DRAWS);
    }

    /// @dev A verdict is on the table and its watchers are drawn; the secret of its verifier comes back.
    function _toWatch(bytes32 taskId, uint128 reserve, bool forced) internal returns (bytes32 secret) {
        desk.open(taskId, submitter, solver);
        return _toWatchAgain(taskId, reserve, forced);
    }

    function _toWatchAgain(bytes32 taskId, uint128 reserve, bool forced) internal returns (bytes32 secret) {
        (,, uint32 number,,) = desk.paths(taskId);
        secret = _secret(taskId, ++number, forced);
        desk.seat(taskId, verifier, ForcedErrors.commitment(verifier, taskId, secret), SEED, reserve);
        Claim[] memory claims = new Claim[](DRAWS);
        for (uint32 i = 0; i < DRAWS; ++i) {
            claims[i] = _truth(i);
        }
        uint32 index = _index(taskId, number, secret);
        bytes32 sealedClaim = ForcedErrors.sealedClaim(taskId, number, SALT, _truth(index));
        if (forced) claims[index].replay = ForcedErrors.errorRoot(SEED, taskId, number, secret);
        desk.post(taskId, claims, sealedClaim);
        _pass(30);
        desk.draw(taskId, WATCH_SEED);
    }

    /// @dev Commitments are taken now.
    function _toCommit() internal {
        _pass(desk.WATCH_WINDOW());
    }

    function _toClosed(bytes32 taskId, bytes32 secret) internal {
        (,, uint32 number,,) = desk.paths(taskId);
        (,,,,, uint64 until,,,,) = desk.seats(taskId, number);
        vm.warp(until + 1);
        desk.disclose(taskId, secret, SALT, _truth(_index(taskId, number, secret)));
        desk.close(taskId);
    }

    /// @dev What a watcher posts that has replayed the claim itself.
    function _found(address who, bytes32 taskId, uint32 seating, uint32 index) internal pure returns (bytes32) {
        return keccak256(abi.encode(who, taskId, seating, index, _truth(index).replay, SALT));
    }

    function _watch(address who, bytes32 taskId, uint32 ticket, bytes32 commitment) internal {
        vm.prank(who);
        jackpot.watch(taskId, ticket, commitment);
    }

    /// @dev Brings a catch in the last seating, where its verdict had its error.
    function _claim(bytes32 taskId, address who, uint32 ticket, bytes32 salt) internal {
        (,, uint32 number,,) = desk.paths(taskId);
        (,,,,,,,,, uint32 index) = desk.seats(taskId, number);
        jackpot.claim(taskId, number, who, ticket, index, salt, abi.encode(number));
    }

    /// @dev The tickets of an account that watch the current seating.
    function _drawn(address who, bytes32 taskId) internal view returns (uint32[] memory drawn) {
        (uint32 number, uint64 since, bytes32 seed,) = desk.seating(taskId);
        uint32 held = sortition.tickets(who, since);
        drawn = new uint32[](held);
        uint256 count = 0;
        for (uint32 i = 0; i < held; ++i) {
            if (sortition.isWatcher(who, i, taskId, number, since, seed)) drawn[count++] = i;
        }
        assembly ("memory-safe") {
            mstore(drawn, count)
        }
    }
}
