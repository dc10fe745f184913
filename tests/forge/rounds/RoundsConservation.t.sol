// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Standing} from "../../../contracts/rounds/IWorkerBonds.sol";
import {RoundDemands} from "../../../contracts/rounds/RoundDemands.sol";
import {RoundDisputes} from "../../../contracts/rounds/RoundDisputes.sol";
import {RoundEvidence} from "../../../contracts/rounds/RoundEvidence.sol";
import {RoundShares} from "../../../contracts/rounds/RoundShares.sol";
import {RoundDemand, TimedDemands} from "../../../contracts/rounds/TimedDemands.sol";
import {WorkerBonds} from "../../../contracts/rounds/WorkerBonds.sol";
import {Vm} from "../Base.sol";
import {RoundsBase} from "./RoundsBase.sol";

/// @notice Moves of all parties in any order: every wei is somebody's after each, and in the end all of the pay has gone
/// out, and all bonds.
contract RoundsConservationTest is RoundsBase {
    uint256 private constant MOVES = 40;
    bytes32 private constant DEMANDED =
        keccak256("Demanded(bytes32,address,bytes32,(bytes32,address,address,uint64,uint256,bytes32))");

    RoundDemand[] private _demanded;
    address[] private _desks;

    function testFuzz_every_wei_is_somebodys(uint256 seed) public {
        for (uint256 i = 0; i < MOVES; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            _move(seed);
            _checkBooks();
        }
        _finish();
        _checkBooks();
        vm.assertEq(vault.pot(address(shares), id), 0);
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
        uint32 number = uint32(seed >> 32 & 3);
        uint256 kind = seed % 14;
        if (kind == 0) _call(sender, address(bonds), abi.encodeCall(WorkerBonds.join, (id)));
        else if (kind == 1) _call(sender, address(bonds), abi.encodeCall(WorkerBonds.leave, (id)));
        else if (kind == 2) _call(sender, address(bonds), abi.encodeCall(WorkerBonds.depart, (id, _party(other))));
        else if (kind == 3) _dispute(sender, _signed(other, round, "end"));
        else if (kind == 4) _report(seed);
        else if (kind == 5) _settleDispute(seed);
        else if (kind == 6 && seed >> 40 & 3 == 0) _equivocation(sender, other, round);
        else if (kind == 7) _demandSource(sender, other, round);
        else if (kind == 8) _expire(seed);
        else if (kind == 9) _call(sender, address(shares), abi.encodeCall(RoundShares.open, (id)));
        else if (kind == 10) _post(sender, seed);
        else if (kind == 11) _demandCounted(sender, number, other);
        else if (kind == 12) _settleLine(number, _party(other));
        else if (kind == 13) _pass(uint256(seed >> 48) % 1.5 days);
    }

    /// @dev All that is open comes to its end.
    function _finish() private {
        for (uint256 i = 0; i < shares.settlements(id); ++i) {
            _pass(2 days);
        }
        while (shares.settlements(id) < _terms().settlements) {
            _pass(10 days);
            shares.open(id);
        }
        _pass(10 days);
        for (uint256 i = 0; i < _demanded.length; ++i) {
            _expire(i);
        }
        for (uint256 i = 1; i <= game.disputes(); ++i) {
            game.report(i, true);
            (bool done,) = address(disputes).call(abi.encodeCall(RoundDisputes.settle, (i)));
            done;
        }
        for (uint32 number = 0; number < shares.settlements(id); ++number) {
            for (uint256 i = 0; i < PARTIES; ++i) {
                _settleLine(number, _party(i));
            }
            _call(treasury, address(shares), abi.encodeCall(RoundShares.close, (id, number)));
        }
    }

    function _report(uint256 seed) private {
        uint256 count = game.disputes();
        if (count != 0) game.report(1 + (seed >> 40) % count, seed >> 47 & 1 == 0);
    }

    function _settleDispute(uint256 seed) private {
        uint256 number = 1 + (seed >> 40) % (game.disputes() + 1);
        _call(treasury, address(disputes), abi.encodeCall(RoundDisputes.settle, (number)));
    }

    function _equivocation(address sender, uint256 party, uint64 round) private {
        _call(
            sender,
            address(evidence),
            abi.encodeCall(
                RoundEvidence.showTwoClaims, (id, _signed(party, round, "end"), _signed(party, round, "another end"))
            )
        );
    }

    function _demandSource(address sender, uint256 party, uint64 round) private {
        _demand(
            sender,
            address(demands),
            abi.encodeCall(RoundDemands.demandSource, (id, _signed(party, round, "end"), 0, type(uint256).max))
        );
    }

    function _demandCounted(address sender, uint32 number, uint256 party) private {
        _demand(
            sender,
            address(shares),
            abi.encodeCall(RoundShares.demandCounted, (id, number, _party(party), 0, type(uint256).max))
        );
    }

    function _demand(address sender, address desk, bytes memory data) private {
        vm.recordLogs();
        if (!_call(sender, desk, data)) return;
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].topics[0] != DEMANDED) continue;
            _demanded.push(abi.decode(logs[i].data, (RoundDemand)));
            _desks.push(desk);
        }
    }

    function _expire(uint256 seed) private {
        if (_demanded.length == 0) return;
        uint256 i = seed % _demanded.length;
        _call(treasury, _desks[i], abi.encodeCall(TimedDemands.expire, (_demanded[i])));
    }

    function _post(address sender, uint256 seed) private {
        uint256 opened = shares.settlements(id);
        if (opened == 0) return;
        bytes memory line = _line(uint64(seed >> 40 & 15), 1 + (seed >> 44 & 3), uint128(seed >> 128 & 0xffff));
        _call(sender, address(shares), abi.encodeCall(RoundShares.post, (id, uint32(opened - 1), line)));
    }

    function _settleLine(uint32 number, address worker) private {
        _call(treasury, address(shares), abi.encodeCall(RoundShares.void, (id, number, worker)));
        _call(treasury, address(shares), abi.encodeCall(RoundShares.settle, (id, number, worker)));
    }

    function _call(address sender, address desk, bytes memory data) private returns (bool done) {
        vm.prank(sender);
        (done,) = desk.call(data);
    }
}
