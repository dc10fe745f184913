// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Vm} from "../Base.sol";
import {RoundDemand, RoundDemands, RoundDisputes, RoundsBase, RoundShares, Standing} from "./RoundsBase.sol";
import {TimedDemands, WorkerBonds} from "./RoundsBase.sol";

/// @notice Moves of all parties in any order: every wei is somebody's after each, and in the end all of the pay has
/// gone out but for what rounding leaves, and all bonds.
contract RoundsConservationTest is RoundsBase {
    uint256 private constant MOVES = 64;
    uint256 private constant KINDS = 14;
    bytes32 private constant DEMANDED =
        keccak256("Demanded(bytes32,address,bytes32,(bytes32,address,address,uint64,uint256,bytes32))");

    RoundDemand[] private _demanded;
    address[] private _desks;
    uint256[KINDS] private _made;

    /// @notice The draws below make every move.
    function test_all_moves_are_made() public {
        for (uint256 run = 0; run < 24; ++run) {
            setUp();
            delete _demanded;
            delete _desks;
            testFuzz_every_wei_is_somebodys(run);
        }
        for (uint256 kind = 0; kind < KINDS; ++kind) {
            vm.assertTrue(_made[kind] != 0, vm.toString(kind));
        }
    }

    /// forge-config: default.fuzz.runs = 8
    /// forge-config: ci.fuzz.runs = 32
    function testFuzz_every_wei_is_somebodys(uint256 seed) public {
        _pass(_terms().period);
        for (uint256 i = 0; i < MOVES; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            _move(seed);
            _checkBooks();
        }
        _finish();
        _checkBooks();
        // What rounding leaves: less than one for each line and for the remainder.
        vm.assertTrue(vault.pot(address(shares), id) < (PARTIES + 1) * _terms().settlements);
        for (uint256 i = 0; i < PARTIES; ++i) {
            vm.assertEq(vault.locked(address(disputes), id, _party(i)), 0);
            vm.assertEq(vault.locked(address(demands), id, _party(i)), 0);
            vm.assertEq(vault.locked(address(shares), id, _party(i)), 0);
            Standing standing = bonds.bond(id, _party(i)).standing;
            bool holds = standing == Standing.Joined || standing == Standing.Leaving;
            vm.assertEq(vault.locked(address(bonds), id, _party(i)) != 0, holds);
        }
    }

    /// @dev Any move of any party; those that are refused change nothing.
    function _move(uint256 seed) private {
        address sender = _party(seed >> 8);
        uint256 other = seed >> 16 & 0xff;
        uint64 round = uint64(seed >> 24 & 3);
        uint256 kind = seed % KINDS;
        // Else everybody is accused of something, and nobody is paid.
        bool isRare = (seed >> 40) % 6 == 0;
        bool done;
        if (kind == 0) done = _call(sender, address(bonds), abi.encodeCall(WorkerBonds.join, (id)));
        else if (kind == 1) done = _call(sender, address(bonds), abi.encodeCall(WorkerBonds.startLeaving, (id)));
        else if (kind == 2) done = _depart();
        else if (kind == 3) done = isRare && _dispute(sender, _signed(other, round, "end"));
        else if (kind == 4) done = _report(seed);
        else if (kind == 5) done = _settleDispute(seed);
        else if (kind == 6) done = isRare && _equivocation(sender, other, round);
        else if (kind == 7) done = isRare && _demandSource(sender, other, round);
        else if (kind == 8) done = _expire(seed);
        else if (kind == 9) done = _call(sender, address(shares), abi.encodeCall(RoundShares.open, (id)));
        else if (kind == 10) done = _post(sender, seed);
        else if (kind == 11) done = _demandCounted(sender);
        else if (kind == 12) done = _settleLines();
        else done = _wait(seed);
        if (done) ++_made[kind];
    }

    /// @dev All that is open comes to its end.
    function _finish() private {
        do {
            _pass(3 days);
        } while (_call(treasury, address(shares), abi.encodeCall(RoundShares.open, (id))));
        for (uint256 i = 0; i < _demanded.length; ++i) {
            _expire(i);
        }
        for (uint256 i = 1; i <= game.disputes(); ++i) {
            game.report(i, true);
            _call(treasury, address(disputes), abi.encodeCall(RoundDisputes.settle, (i)));
        }
        // Once to take lines out, once to pay the others what they are due then.
        _settleLines();
        _settleLines();
        for (uint32 number = 0; number < shares.settlements(id); ++number) {
            _call(treasury, address(shares), abi.encodeCall(RoundShares.close, (id, number)));
        }
    }

    function _wait(uint256 seed) private returns (bool) {
        _pass((seed >> 48) % 36 hours);
        return true;
    }

    function _depart() private returns (bool done) {
        for (uint256 i = 0; i < PARTIES; ++i) {
            if (_call(treasury, address(bonds), abi.encodeCall(WorkerBonds.depart, (id, _party(i))))) done = true;
        }
    }

    function _report(uint256 seed) private returns (bool) {
        uint256 count = game.disputes();
        if (count != 0) game.report(1 + (seed >> 40) % count, seed >> 47 & 1 == 0);
        return count != 0;
    }

    function _settleDispute(uint256 seed) private returns (bool) {
        uint256 number = 1 + (seed >> 40) % (game.disputes() + 1);
        return _call(treasury, address(disputes), abi.encodeCall(RoundDisputes.settle, (number)));
    }

    function _equivocation(address sender, uint256 party, uint64 round) private returns (bool) {
        bytes memory data = _twoClaims(party, round);
        _announce(sender, data);
        return _call(sender, address(evidence), data);
    }

    function _demandSource(address sender, uint256 party, uint64 round) private returns (bool) {
        return _demand(
            sender,
            address(demands),
            abi.encodeCall(
                RoundDemands.demandSource, (id, _signed(party, round, "end"), _phase(), 0, type(uint256).max)
            )
        );
    }

    /// @dev Of the first line in the last settlement that can be disputed.
    function _demandCounted(address sender) private returns (bool) {
        uint256 opened = shares.settlements(id);
        for (uint256 i = 0; opened != 0 && i < PARTIES; ++i) {
            bytes memory data =
                abi.encodeCall(RoundShares.demandCounted, (id, uint32(opened - 1), _party(i), 0, type(uint256).max));
            if (_demand(sender, address(shares), data)) return true;
        }
        return false;
    }

    function _demand(address sender, address desk, bytes memory data) private returns (bool) {
        vm.recordLogs();
        if (!_call(sender, desk, data)) return false;
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].topics[0] != DEMANDED) continue;
            _demanded.push(abi.decode(logs[i].data, (RoundDemand)));
            _desks.push(desk);
        }
        return true;
    }

    function _expire(uint256 seed) private returns (bool) {
        if (_demanded.length == 0) return false;
        uint256 i = seed % _demanded.length;
        return _call(treasury, _desks[i], abi.encodeCall(TimedDemands.expire, (_demanded[i])));
    }

    function _post(address sender, uint256 seed) private returns (bool) {
        uint256 opened = shares.settlements(id);
        if (opened == 0) return false;
        bytes memory line = _line(uint64(seed >> 40 & 15), 1 + (seed >> 44 & 3));
        bytes memory data = abi.encodeCall(RoundShares.post, (id, uint32(opened - 1), line, _phasesOfLine()));
        return _call(sender, address(shares), data);
    }

    function _settleLines() private returns (bool done) {
        for (uint32 number = 0; number < shares.settlements(id); ++number) {
            for (uint256 i = 0; i < PARTIES; ++i) {
                if (_settleLine(number, _party(i))) done = true;
            }
        }
    }

    function _settleLine(uint32 number, address worker) private returns (bool) {
        return _call(treasury, address(shares), abi.encodeCall(RoundShares.settle, (id, number, worker)));
    }

    function _call(address sender, address desk, bytes memory data) private returns (bool done) {
        vm.prank(sender);
        (done,) = desk.call(data);
    }
}
