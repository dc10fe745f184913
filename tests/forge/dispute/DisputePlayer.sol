// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame, StartParams} from "../../../contracts/dispute/IDisputeGame.sol";
import {IDisputeResolver} from "../../../contracts/dispute/IDisputeResolver.sol";

/// @notice A player: whoever the hearing says.
contract Seat {
    function play(address game, bytes calldata move) external returns (bool ok, bytes memory result) {
        return game.call(move);
    }
}

/// @notice What a hearing needs of the game beside its moves.
interface IHeard is IDisputeGame {
    function head(uint256 number) external view returns (bytes32);
}

/// @notice Whole disputes in one call: the resolver, and both players.
contract DisputePlayer is IDisputeResolver {
    /// @notice Move `index` was refused.
    error Refused(uint256 index, bytes reason);
    /// @notice The vain proof was none.
    error Accepted();

    Seat public immutable asserter = new Seat();
    Seat public immutable challenger = new Seat();

    uint256 private _resolved;
    bool private _asserterWon;

    /// @notice Plays a dispute to its end.
    /// @param params Of the dispute; the players are the seats, whatever it says.
    /// @param moves All legal ones in order, the asserter's first.
    /// @param vain A move of the side on turn after them that must be refused; empty for none.
    /// @return heads The head after the start and after each move but a last one that ends the dispute.
    /// @return resolved Whether the moves have ended the dispute.
    /// @return asserterWon Who has won then.
    function hear(
        IHeard game,
        StartParams memory params,
        bytes calldata header,
        bytes calldata payload,
        bytes[] calldata moves,
        bytes calldata vain
    ) external returns (bytes32[] memory heads, bool resolved, bool asserterWon) {
        (params.asserter, params.challenger) = (address(asserter), address(challenger));
        uint256 number = game.start(params, header, payload);
        heads = _play(game, number, moves);
        (resolved, asserterWon) = (_resolved == number, _asserterWon);
        _try(game, moves.length, vain);
    }

    function _try(IHeard game, uint256 made, bytes calldata vain) private {
        if (vain.length == 0) return;
        (bool ok,) = _seat(made).play(address(game), vain);
        if (ok) revert Accepted();
    }

    function _play(IHeard game, uint256 number, bytes[] calldata moves) private returns (bytes32[] memory heads) {
        heads = new bytes32[](moves.length + 1);
        heads[0] = game.head(number);
        for (uint256 i = 0; i < moves.length; ++i) {
            (bool ok, bytes memory reason) = _seat(i).play(address(game), moves[i]);
            if (!ok) revert Refused(i, reason);
            heads[i + 1] = game.head(number);
        }
    }

    function _seat(uint256 made) private view returns (Seat) {
        return made % 2 == 0 ? asserter : challenger;
    }

    function onResolved(uint256 number, bool asserterWon) external {
        _resolved = number;
        _asserterWon = asserterWon;
    }
}
