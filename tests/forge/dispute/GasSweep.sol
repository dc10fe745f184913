// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeResolver, IHeard, Seat, StartParams} from "./DisputePlayer.sol";

/// @notice One call of a dispute under many gas limits: it does what it does with plenty, or nothing.
/// @dev Each try is undone, with what it has made warm: the contract that executes is cold in each, the game is not.
contract GasSweep is IDisputeResolver {
    /// @notice What a try has led to; it is undone by this.
    error Tried(bytes32 outcome);
    /// @notice With this limit the call neither fails as with less nor does what it does with plenty.
    error Differs(uint256 limit);

    /// @dev The game is a new one, of which each call of a sweep makes the first dispute.
    uint256 private constant NUMBER = 1;
    uint256 private constant PLENTY = 50_000_000;

    Seat public immutable asserter = new Seat();
    Seat public immutable challenger = new Seat();

    bytes32 private _decision;

    /// @notice Sweeps the last of `moves` over all limits from `from` to before `to`; the start if there are none.
    /// @return least The least limit tried with which the call succeeds; the largest number if there is none.
    function sweep(
        IHeard game,
        StartParams memory params,
        bytes calldata header,
        bytes calldata payload,
        bytes[] calldata moves,
        uint256[3] calldata fromToStep
    ) external returns (uint256 least) {
        (params.asserter, params.challenger) = (address(asserter), address(challenger));
        bytes memory call = abi.encodeCall(game.start, (params, header, payload));
        address target = address(game);
        if (moves.length > 0) {
            game.start(params, header, payload);
            for (uint256 i = 0; i + 1 < moves.length; ++i) {
                (bool ok,) = _seat(i).play(address(game), moves[i]);
                require(ok, "a move before");
            }
            target = address(_seat(moves.length - 1));
            call = abi.encodeCall(Seat.play, (address(game), moves[moves.length - 1]));
        }
        return _sweep(game, target, call, fromToStep);
    }

    function _sweep(IHeard game, address target, bytes memory call, uint256[3] calldata fromToStep)
        private
        returns (uint256 least)
    {
        bytes32 right = _try(game, target, call, PLENTY);
        least = type(uint256).max;
        for (uint256 limit = fromToStep[0]; limit < fromToStep[1]; limit += fromToStep[2]) {
            bytes32 found = _try(game, target, call, limit);
            if (found == 0 && least == type(uint256).max) continue;
            if (found != right) revert Differs(limit);
            if (limit < least) least = limit;
        }
    }

    /// @dev What the call leads to, 0 if it fails; nothing stays of it.
    function _try(IHeard game, address target, bytes memory call, uint256 limit) private returns (bytes32 outcome) {
        uint256 free;
        assembly ("memory-safe") {
            free := mload(0x40)
        }
        (bool ok, bytes memory reason) = address(this).call(abi.encodeCall(this.attempt, (game, target, call, limit)));
        require(!ok && reason.length == 36 && bytes4(reason) == Tried.selector, "a try");
        assembly {
            outcome := mload(add(reason, 36))
            mstore(0x40, free) // what was allocated here is not used any more
        }
    }

    /// @notice Makes the call, and reverts with what it has led to.
    function attempt(IHeard game, address target, bytes calldata call, uint256 limit) external {
        (bool ok, bytes memory result) = target.call{gas: limit}(call);
        if (ok && target != address(game)) (ok,) = abi.decode(result, (bool, bytes));
        if (!ok) revert Tried(0);
        revert Tried(keccak256(abi.encode(game.head(NUMBER), _decision)));
    }

    function _seat(uint256 made) private view returns (Seat) {
        return made % 2 == 0 ? asserter : challenger;
    }

    function onResolved(uint256 number, bool asserterWon) external {
        _decision = keccak256(abi.encode(number, asserterWon));
    }
}
