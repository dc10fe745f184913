// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DisputeStorage} from "../../../contracts/dispute/DisputeStorage.sol";
import {MovePayload} from "../../../contracts/dispute/MovePayload.sol";
import {PickedPart} from "../../../contracts/dispute/PickedPart.sol";
import {Vm} from "../Base.sol";
import {Clock, ClockWords} from "./ClockWords.sol";
import {Deployment, DisputeGame} from "./Deployment.sol";

/// @notice A game whose disputes are put into storage where a test wants them, and moves that are sent to it.
abstract contract PlacedMoves is Deployment {
    /// @dev The first of the two words of dispute 0.
    uint256 internal constant SLOT = 1;

    DisputeGame internal game;
    uint256 internal number = 1;
    address internal me;
    address internal other;

    function setUp() public {
        vm.warp(1_700_000_000);
        (me, other) = (account("me"), account("other"));
        _deploy(4);
    }

    function _deploy(uint8 width) internal virtual;

    function _store(bytes32 head, Clock memory clock) internal {
        bytes32 slot = bytes32(SLOT + 2 * number);
        vm.store(address(game), slot, head);
        vm.store(address(game), bytes32(uint256(slot) + 1), bytes32(ClockWords.pack(clock)));
    }

    function _try(address sender, bytes memory data) internal returns (bool success, bytes memory answer) {
        vm.prank(sender);
        return address(game).call(data);
    }

    function _send(bytes memory data) internal {
        (bool success,) = _try(me, data);
        vm.assertTrue(success);
    }

    function _refuse(address sender, bytes memory data, bytes memory reason) internal {
        (bool success, bytes memory answer) = _try(sender, data);
        vm.assertFalse(success);
        vm.assertEq(answer, reason);
    }

    function _wrongHead(address mover) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(DisputeStorage.WrongHead.selector, mover);
    }

    function _length(uint256 actual, uint256 expected) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, actual, expected);
    }

    function _noPart(uint256 index) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(PickedPart.NoSuchPart.selector, index);
    }

    /// @dev The only log since recording began is the move's: it names the dispute by all bits of its number.
    function _expectLogged(uint256 index, bytes memory payload) internal {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 1);
        vm.assertEq(logs[0].topics.length, 1);
        vm.assertEq(logs[0].topics[0], bytes32(number));
        vm.assertEq(logs[0].data, abi.encodePacked(uint8(1), uint8(index), payload));
    }

    /// @dev The call costs at most `most` as a transaction with both slots cold: the larger one of use and floor.
    function _sendCold(bytes memory data, uint256 most) internal {
        vm.cool(address(game));
        (bool success,) = _try(me, data);
        uint256 tokens = 0;
        for (uint256 i = 0; i < data.length; i++) {
            tokens += data[i] == 0 ? 1 : 4;
        }
        uint256 use = 4 * tokens + vm.lastCallGas().gasTotalUsed;
        vm.assertLe(21000 + (use > 10 * tokens ? use : 10 * tokens), most);
        vm.assertTrue(success);
    }
}
