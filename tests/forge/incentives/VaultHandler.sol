// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Forwarder} from "../../../contracts/incentives/Forwarder.sol";
import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Vm} from "../Base.sol";
import {PlainDesk} from "./PlainDesk.sol";
import {Relaying} from "./Relaying.sol";
import {Coin} from "./Tokens.sol";
import {VaultReplay} from "./VaultReplay.sol";

/// @notice Four parties, three desks with two duties each: every verb with amounts as they come, time that passes, and
/// calls that must be refused. Keeps books of its own, by calls alone, and an indexer's, by events alone.
contract VaultHandler is Relaying {
    uint256 public constant PARTIES = 4;
    uint256 public constant DESKS = 3;
    uint256 public constant KEYS = 2;
    uint64 public constant EXIT_DELAY = 5 days;

    StakeVault public vault;
    Forwarder public forwarder;
    Coin public coin;
    VaultReplay public indexer = new VaultReplay();
    PlainDesk[DESKS] public desks;
    address[PARTIES] public parties;

    // The books
    uint256 public deposited;
    uint256 public withdrawn;
    uint256 public gifts;
    uint256 public forfeited;
    uint256 public paid;
    mapping(address party => uint256) public received;
    mapping(address party => uint256) public spent;
    mapping(address desk => uint256) public entrusted;
    mapping(address desk => uint256) public returned;
    mapping(address desk => mapping(bytes32 key => mapping(address party => uint64))) public lastExit;

    // What has happened
    uint256 public refusals;
    uint256 public accepted;
    uint256 public changed;
    uint256 public relayed;
    uint256 public left;
    uint256 public leftByTheWay;
    uint256 public forfeitedLeaving;
    uint256 public moved;
    uint256 public unlocked;

    uint256 private _now = 1_000_000;

    constructor(bool isToken) {
        vm.warp(_now);
        vm.recordLogs();
        if (isToken) coin = new Coin();
        forwarder = new Forwarder();
        vault = new StakeVault(address(coin), EXIT_DELAY, address(forwarder), address(this));
        address[] memory named = new address[](DESKS);
        for (uint256 i = 0; i < DESKS; ++i) {
            desks[i] = new PlainDesk(vault);
            named[i] = address(desks[i]);
        }
        for (uint256 i = 0; i < PARTIES; ++i) {
            parties[i] = vm.addr(i + 1);
            if (isToken) {
                vm.prank(parties[i]);
                coin.approve(address(vault), type(uint256).max);
            }
        }
        vault.wire(named);
        _index();
    }

    /// @dev Time that a call sets is forgotten after it, so every call begins by setting it again.
    modifier timed() {
        vm.warp(_now);
        vm.recordLogs();
        _;
        _index();
    }

    function _index() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter == address(vault)) indexer.replay(logs[i]);
        }
    }

    // Moves

    function deposit(uint256 dice) external timed {
        (address from, address to) = (_party(dice), _party(dice >> 8));
        uint256 amount = 1 + (dice >> 16) % 10 ether;
        uint256 value = address(coin) == address(0) ? amount : 0;
        if (value == 0) coin.give(from, amount);
        else vm.deal(from, value);
        vm.prank(from);
        vault.deposit{value: value}(to, amount);
        deposited += amount;
        received[to] += amount;
    }

    function withdraw(uint256 dice) external timed {
        address from = _party(dice);
        uint256 amount = _some(dice >> 16, vault.free(from));
        if (amount == 0) return;
        vm.prank(from);
        vault.withdraw(_party(dice >> 8), amount);
        _note(from, amount);
    }

    /// @notice The same, signed by the party and sent by somebody else.
    function relay(uint256 dice) external timed {
        uint256 key = 1 + dice % PARTIES;
        uint256 amount = _some(dice >> 16, vault.free(vm.addr(key)));
        if (amount == 0) return;
        bytes memory data = abi.encodeCall(IStakeVault.withdraw, (_party(dice >> 8), amount));
        forwarder.execute(_request(forwarder, key, address(vault), 0, data));
        _note(vm.addr(key), amount);
        ++relayed;
    }

    function _note(address from, uint256 amount) private {
        withdrawn += amount;
        spent[from] += amount;
    }

    /// @notice Somebody sends the asset past `deposit`.
    function gift(uint256 dice) external timed {
        uint256 amount = dice % 1 ether;
        if (address(coin) == address(0)) vm.deal(address(vault), address(vault).balance + amount);
        else coin.give(address(vault), amount);
        gifts += amount;
    }

    function lock(uint256 dice) external timed {
        (PlainDesk desk, bytes32 key, address party) = _place(dice);
        uint256 amount = _some(dice >> 32, vault.free(party));
        desk.lock(key, party, amount);
        spent[party] += amount;
        entrusted[address(desk)] += amount;
    }

    function unlock(uint256 dice) external timed {
        (PlainDesk desk, bytes32 key, address party) = _place(dice);
        uint256 amount = _some(dice >> 32, vault.locked(address(desk), key, party));
        desk.unlock(key, party, amount);
        _noteReturned(desk, party, amount);
        if (amount > 0) ++unlocked;
    }

    function startExit(uint256 dice) external timed {
        (PlainDesk desk, bytes32 key, address party) = _place(dice);
        uint256 amount = _some(dice >> 32, vault.locked(address(desk), key, party));
        (uint256 before, uint64 until) = vault.leaving(address(desk), key, party);
        desk.startExit(key, party, amount);
        if (amount == 0) return;
        if (before > 0 && _now >= until) {
            _noteReturned(desk, party, before);
            ++leftByTheWay;
        }
        lastExit[address(desk)][key][party] = uint64(_now);
    }

    function finishExit(uint256 dice) external timed {
        (PlainDesk desk, bytes32 key, address party) = _place(dice);
        (uint256 amount, uint64 until) = vault.leaving(address(desk), key, party);
        if (amount == 0 || _now < until) {
            _refused(party, address(vault), abi.encodeCall(IStakeVault.finishExit, (address(desk), key, party)));
            return;
        }
        vault.finishExit(address(desk), key, party);
        _noteReturned(desk, party, amount);
        ++left;
    }

    function forfeit(uint256 dice) external timed {
        (PlainDesk desk, bytes32 key, address party) = _place(dice);
        uint256 here = vault.locked(address(desk), key, party);
        uint256 amount = _some(dice >> 32, here + _late(desk, key, party));
        desk.forfeit(key, party, amount);
        forfeited += amount;
        if (amount > here) ++forfeitedLeaving;
    }

    function pay(uint256 dice) external timed {
        (PlainDesk desk, bytes32 key, address party) = _place(dice);
        uint256 amount = _some(dice >> 32, vault.pot(address(desk), key));
        desk.pay(key, party, amount);
        _noteReturned(desk, party, amount);
        paid += amount;
    }

    function move(uint256 dice) external timed {
        (PlainDesk desk, bytes32 key,) = _place(dice);
        (PlainDesk to, bytes32 toKey,) = _place(dice >> 64);
        uint256 amount = _some(dice >> 32, vault.pot(address(desk), key));
        desk.move(key, address(to), toKey, amount);
        returned[address(desk)] += amount;
        entrusted[address(to)] += amount;
        if (amount > 0 && address(desk) != address(to)) ++moved;
    }

    function pass(uint256 dice) external timed {
        _now += dice % 3 == 0 ? EXIT_DELAY : dice % EXIT_DELAY;
    }

    // Calls that must be refused

    /// @notice A desk asks for more than there is: with what other desks hold of the same party, if they do.
    function overdraw(uint256 dice) external timed {
        (PlainDesk desk, bytes32 key, address party) = _place(dice);
        PlainDesk other = desks[(dice % DESKS + 1) % DESKS];
        uint256 more = 1 + vault.locked(address(other), key, party) + vault.pot(address(other), key);
        uint256 here = vault.locked(address(desk), key, party);
        uint256 inPot = vault.pot(address(desk), key);
        bytes[6] memory calls = [
            abi.encodeCall(PlainDesk.lock, (key, party, vault.free(party) + 1)),
            abi.encodeCall(PlainDesk.unlock, (key, party, here + more)),
            abi.encodeCall(PlainDesk.startExit, (key, party, here + more)),
            abi.encodeCall(PlainDesk.forfeit, (key, party, here + _late(desk, key, party) + more)),
            abi.encodeCall(PlainDesk.pay, (key, party, inPot + more)),
            abi.encodeCall(PlainDesk.move, (key, address(other), key, inPot + more))
        ];
        _refused(party, address(desk), calls[(dice >> 64) % calls.length]);
    }

    /// @notice A party does what only desks or the deployer may, or takes more than is free.
    function intrude(uint256 dice) external timed {
        (PlainDesk desk, bytes32 key, address party) = _place(dice);
        uint256 amount = (dice >> 80) % 2 ether;
        address[] memory named = new address[](1);
        named[0] = address(this);
        bytes[12] memory calls = [
            abi.encodeCall(IStakeVault.lock, (key, party, amount)),
            abi.encodeCall(IStakeVault.unlock, (key, party, amount)),
            abi.encodeCall(IStakeVault.startExit, (key, party, amount)),
            abi.encodeCall(IStakeVault.forfeit, (key, party, amount)),
            abi.encodeCall(IStakeVault.pay, (key, party, amount)),
            abi.encodeCall(IStakeVault.move, (key, address(desk), key, amount)),
            abi.encodeCall(IStakeVault.withdraw, (party, vault.free(party) + 1)),
            abi.encodeCall(IStakeVault.withdraw, (party, 0)),
            abi.encodeCall(IStakeVault.withdraw, (address(0), amount)),
            abi.encodeCall(IStakeVault.deposit, (party, 0)),
            abi.encodeCall(IStakeVault.deposit, (address(0), amount)),
            abi.encodeCall(IStakeVault.wire, (named))
        ];
        uint256 which = (dice >> 64) % calls.length;
        // Of desks, the deployer names no more either.
        _refused(which == 11 ? address(this) : party, address(vault), calls[which]);
    }

    function _refused(address caller, address target, bytes memory data) private {
        bytes32 before = state();
        vm.prank(caller);
        (bool done,) = target.call(data);
        // forge records what a reverted call has logged; a chain doesn't.
        vm.getRecordedLogs();
        ++refusals;
        if (done) ++accepted;
        if (state() != before) ++changed;
    }

    // Views

    /// @notice Every balance that there is, in one hash.
    function state() public view returns (bytes32 hash) {
        hash = keccak256(abi.encode(held(), vault.wired()));
        for (uint256 p = 0; p < PARTIES; ++p) {
            hash = keccak256(abi.encode(hash, vault.free(parties[p])));
        }
        for (uint256 i = 0; i < DESKS * KEYS; ++i) {
            (PlainDesk desk, bytes32 key,) = _place(i);
            hash = keccak256(abi.encode(hash, vault.pot(address(desk), key)));
            for (uint256 p = 0; p < PARTIES; ++p) {
                (uint256 amount, uint64 until) = vault.leaving(address(desk), key, parties[p]);
                uint256 lockedNow = vault.locked(address(desk), key, parties[p]);
                hash = keccak256(abi.encode(hash, lockedNow, amount, until));
            }
        }
    }

    function held() public view returns (uint256) {
        return balance(address(vault));
    }

    function balance(address account) public view returns (uint256) {
        return address(coin) == address(0) ? account.balance : coin.balanceOf(account);
    }

    function keyOf(uint256 number) public pure returns (bytes32) {
        return bytes32(number + 1);
    }

    function _place(uint256 dice) private view returns (PlainDesk desk, bytes32 key, address party) {
        return (desks[dice % DESKS], keyOf((dice / DESKS) % KEYS), parties[(dice / DESKS / KEYS) % PARTIES]);
    }

    function _party(uint256 dice) private view returns (address) {
        return parties[dice % PARTIES];
    }

    /// @dev All, nothing, or something between.
    function _some(uint256 dice, uint256 most) private pure returns (uint256) {
        if (dice % 4 == 0) return most;
        return dice % 16 == 1 ? 0 : bound(dice >> 4, 0, most);
    }

    function _late(PlainDesk desk, bytes32 key, address party) private view returns (uint256) {
        (uint256 amount, uint64 until) = vault.leaving(address(desk), key, party);
        return _now < until ? amount : 0;
    }

    function _noteReturned(PlainDesk desk, address party, uint256 amount) private {
        returned[address(desk)] += amount;
        received[party] += amount;
    }
}
