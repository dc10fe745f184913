// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Auction} from "../../../contracts/incentives/Auction.sol";
import {AuctionTerms} from "../../../contracts/incentives/IAuction.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Vm} from "../Base.sol";
import {AuctionBase} from "./AuctionBase.sol";
import {AuctionReplay} from "./AuctionReplay.sol";

/// @notice Drives three tasks and eight bidders through moves that are allowed, and throws moves that are not at them.
/// Beside the contract it keeps the plain list of bids of every round.
contract AuctionHandler is AuctionBase {
    enum Fate {
        Sealed,
        Revealed,
        Forfeited
    }

    struct Entry {
        address bidder;
        uint128 price;
        uint32 promised;
        Fate fate;
    }

    struct Book {
        bytes32 id;
        bytes32 taskId;
        AuctionTerms terms;
        uint256 opened;
        bool over;
        address winner;
        uint128 price;
        uint32 promised;
        uint128 offered; // what the winner bid
    }

    uint256 public constant BIDDERS = 8;
    uint256 public constant TASKS = 3;

    AuctionReplay public replay;
    Book[] private _books;
    mapping(bytes32 id => Entry[]) private _entries;
    mapping(bytes32 taskId => uint256) private _current; // number of its last book, from 1
    mapping(bytes32 id => uint256) private _numbers; // of books, from 1
    mapping(address => uint256) public bestRate;
    uint256 public deposited;
    uint256 public lost;
    uint256 private _now;

    // What a run has seen.
    uint256 public wins;
    uint256 public ties;
    uint256 public displaced;
    uint256 public forfeits;
    uint256 public expired;
    uint256 public cancelled;
    uint256 public withoutWinner;
    uint256 public proven;
    uint256 public refused;
    uint256 public most;

    constructor() {
        setUp();
        deposited = 6 * MONEY;
        replay = new AuctionReplay();
        for (uint256 i = 0; i < BIDDERS; ++i) {
            vm.deal(address(this), MONEY);
            vault.deposit{value: MONEY}(bidder(i), MONEY);
            deposited += MONEY;
        }
        _now = block.timestamp;
    }

    /// @dev Time that a call sets is forgotten after it, so every call begins by setting it again. What the auction
    /// tells goes to the bot.
    modifier told() {
        vm.warp(_now);
        vm.recordLogs();
        _;
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter == address(auction)) replay.replay(logs[i]);
        }
    }

    /// @notice Opens the next round of some task, if the last one is over; twelve in all.
    function open(uint256 which, uint256 dice) public told {
        if (_books.length == 12) return;
        bytes32 taskId = bytes32(1 + which % TASKS);
        if (_current[taskId] != 0 && !_books[_current[taskId] - 1].over) return;
        AuctionTerms memory t = _terms();
        // Few values, so that scores are often equal; half of the tasks are for those who have proven something.
        t.maximum = uint128(bound(dice, 6, 12)) * 1 ether;
        t.solverStake = uint128(bound(dice >> 8, 1, 1 ether));
        t.secondPrice = uint128((dice >> 16) % 3) * 0.001 ether;
        t.workUnits = [ENTRY_WORK, ENTRY_WORK, 4 * ENTRY_WORK, 16 * ENTRY_WORK][(dice >> 24) % 4];
        t.thresholds = bytes32(dice);
        Book storage b = _books.push();
        (b.id, b.taskId, b.terms, b.opened) = (desk.open(taskId, t), taskId, t, _now);
        _current[taskId] = _numbers[b.id] = _books.length;
    }

    function bid(uint256 which, uint256 who, uint256 dice) public told {
        if (_books.length == 0) return;
        Book storage b = _live(which);
        address from = bidder(who % BIDDERS);
        id = b.id;
        if (b.over || _now > b.opened + WINDOW || _find(from) != 0) return;
        if (vault.free(from) < b.terms.solverStake) return;
        Entry memory e =
            Entry(from, uint128(bound(dice, 0, 6)) * 1 ether, uint32(bound(dice >> 8, 1, 3)) * 1000, Fate.Sealed);
        _entries[id].push(e);
        _bid(from, e.price, e.promised);
        if (_entries[id].length > most) most = _entries[id].length;
    }

    function reveal(uint256 which, uint256 who) public told {
        if (_books.length == 0) return;
        Book storage b = _live(which);
        id = b.id;
        if (b.over || _entries[id].length == 0) return;
        if (_now <= b.opened + WINDOW || _now > b.opened + 2 * WINDOW) return;
        Entry storage e = _entries[id][who % _entries[id].length];
        if (e.fate != Fate.Sealed) return;
        if (!admissible(b.terms, e)) {
            ++refused;
            vm.expectRevert();
            _reveal(e.bidder, e.price, e.promised);
            return;
        }
        address leader = auction.round(id).leader;
        _reveal(e.bidder, e.price, e.promised);
        e.fate = Fate.Revealed;
        if (leader != address(0) && auction.round(id).leader != leader) ++displaced;
    }

    function conclude(uint256 which) public told {
        if (_books.length == 0) return;
        Book storage b = _live(which);
        id = b.id;
        (uint256 open_, uint256 best,, uint256 equal) = tally(b.id);
        if (b.over || _now <= b.opened + WINDOW || (open_ > 0 && _now <= b.opened + 2 * WINDOW)) return;
        (b.winner, b.price,) = desk.conclude(b.taskId);
        b.over = true;
        if (equal > 1) ++ties;
        if (best == 0) {
            ++withoutWinner;
        } else {
            ++wins;
            (b.promised, b.offered) = (_entries[b.id][best - 1].promised, _entries[b.id][best - 1].price);
        }
    }

    /// @notice The winner of some last round has finished its task, or its duty ends otherwise.
    function finish(uint256 which, bool accepted) public told {
        if (_books.length == 0) return;
        Book storage b = _live(which);
        if (!b.over || b.winner == address(0)) return;
        if (accepted) {
            desk.recordAccepted(b.taskId);
            uint256 rate = (uint256(b.terms.workUnits) << 32) / b.promised;
            if (rate > bestRate[b.winner]) {
                bestRate[b.winner] = rate;
                ++proven;
            }
        }
        desk.release(b.taskId, b.winner);
    }

    function forfeit(uint256 which, uint256 who) public told {
        if (_books.length == 0) return;
        Book storage b = _books[which % _books.length];
        id = b.id;
        if (_entries[id].length == 0 || _now <= b.opened + 2 * WINDOW) return;
        Entry storage e = _entries[id][who % _entries[id].length];
        if (e.fate != Fate.Sealed) return;
        auction.forfeit(id, e.bidder);
        e.fate = Fate.Forfeited;
        lost += (uint256(b.terms.solverStake) + 15) / 16;
        ++forfeits;
    }

    function expire(uint256 which) public told {
        if (_books.length == 0) return;
        Book storage b = _live(which);
        if (b.over || _now <= b.opened + 3 * WINDOW) return;
        auction.expire(b.id);
        b.over = true;
        ++expired;
    }

    function cancel(uint256 which) public told {
        if (_books.length == 0) return;
        Book storage b = _live(which);
        if (b.over || _entries[b.id].length > 0) return;
        desk.cancel(b.taskId);
        b.over = true;
        ++cancelled;
    }

    /// @notice What nobody may do, by somebody: it fails whenever it comes.
    function intrude(uint256 which, uint256 who, uint256 what) public told {
        if (_books.length == 0) return;
        Book storage b = _live(which);
        address from = bidder(who % BIDDERS);
        (, uint256 best,,) = tally(b.id);
        bytes[7] memory calls = [
            abi.encodeCall(auction.conclude, (b.taskId)),
            abi.encodeCall(auction.cancel, (b.taskId)),
            abi.encodeCall(auction.open, (b.taskId, b.terms)),
            abi.encodeCall(auction.recordAccepted, (b.taskId)),
            abi.encodeCall(auction.reveal, (b.id, from, 0, 1000, bytes32("no salt"))),
            abi.encodeCall(auction.forfeit, (b.id, best == 0 ? submitter : _entries[b.id][best - 1].bidder)),
            abi.encodeCall(auction.bid, (b.id, "by the submitter"))
        ];
        uint256 index = what % calls.length;
        vm.prank(index == 6 ? submitter : from);
        (bool worked,) = address(auction).call(calls[index]);
        vm.assertFalse(worked, "an intruder succeeded");
    }

    function pass(uint256 time) public {
        _now += bound(time, 1, WINDOW);
    }

    /// @notice Past all windows, anybody brings every round to its end.
    function finishAll() external told {
        _now += 3 * WINDOW + 1;
        vm.warp(_now);
        for (uint256 i = 0; i < _books.length; ++i) {
            Book storage b = _books[i];
            if (!b.over) auction.expire(b.id);
            b.over = true;
            for (uint256 k = 0; k < _entries[b.id].length; ++k) {
                Entry storage e = _entries[b.id][k];
                if (e.fate == Fate.Sealed) {
                    auction.forfeit(b.id, e.bidder);
                    e.fate = Fate.Forfeited;
                    lost += (uint256(b.terms.solverStake) + 15) / 16;
                }
                vm.assertEq(vault.locked(address(auction), b.id, e.bidder), 0);
            }
            vm.assertTrue(auction.round(b.id).closed);
        }
    }

    function theAuction() external view returns (Auction) {
        return auction;
    }

    function theVault() external view returns (StakeVault) {
        return vault;
    }

    function theDesk() external view returns (address) {
        return address(desk);
    }

    /// @notice Money of the accounts that never act.
    function idle() external view returns (uint256 sum) {
        address[6] memory parties = [submitter, verifier, ada, bob, cyd, dan];
        for (uint256 i = 0; i < parties.length; ++i) {
            sum += vault.free(parties[i]);
        }
    }

    // The plain list

    function bidder(uint256 i) public pure returns (address) {
        return address(uint160(0x1000 + i));
    }

    function books() external view returns (uint256) {
        return _books.length;
    }

    function book(uint256 i) external view returns (Book memory) {
        return _books[i];
    }

    function entries(bytes32 roundId) external view returns (Entry[] memory) {
        return _entries[roundId];
    }

    function scoreOf(AuctionTerms memory t, Entry memory e) public pure returns (uint256) {
        return e.price + uint256(t.secondPrice) * e.promised;
    }

    function admissible(AuctionTerms memory t, Entry memory e) public view returns (bool) {
        return scoreOf(t, e) <= t.maximum
            && (t.workUnits <= ENTRY_WORK || (uint256(t.workUnits) << 32) / e.promised <= bestRate[e.bidder] * GROWTH);
    }

    /// @notice Sealed bids, number from 1 of the best revealed one, the second score, and how many have the best score.
    function tally(bytes32 roundId) public view returns (uint256 open_, uint256 best, uint256 second, uint256 equal) {
        AuctionTerms memory t = _books[_numbers[roundId] - 1].terms;
        Entry[] memory list = _entries[roundId];
        second = t.maximum;
        for (uint256 i = 0; i < list.length; ++i) {
            if (list[i].fate == Fate.Sealed) ++open_;
            if (list[i].fate != Fate.Revealed) continue;
            if (best == 0 || scoreOf(t, list[i]) < scoreOf(t, list[best - 1])) best = i + 1;
        }
        for (uint256 i = 0; i < list.length; ++i) {
            if (list[i].fate != Fate.Revealed) continue;
            uint256 score = scoreOf(t, list[i]);
            if (score == scoreOf(t, list[best - 1])) ++equal;
            if (i != best - 1 && score < second) second = score;
        }
    }

    /// @dev The last round of some task that has one.
    function _live(uint256 which) private view returns (Book storage) {
        uint256 number = _current[bytes32(1 + which % TASKS)];
        return _books[(number == 0 ? _current[_books[0].taskId] : number) - 1];
    }

    /// @dev Number from 1 of a bidder's bid in the round `id`.
    function _find(address from) private view returns (uint256) {
        for (uint256 i = 0; i < _entries[id].length; ++i) {
            if (_entries[id][i].bidder == from) return i + 1;
        }
        return 0;
    }
}
