// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame, StartParams} from "../../../contracts/dispute/IDisputeGame.sol";
import {MarketBase, MarketDeployment, Terms} from "../market/MarketBase.sol";

/// @notice Starts a dispute and does nothing else: what it costs to open one is on record elsewhere.
contract CheapGame is IDisputeGame {
    function start(StartParams calldata, bytes calldata, bytes calldata) external pure returns (uint256) {
        return 1;
    }

    function longest(uint32) external pure returns (uint256) {
        return 0;
    }
}

/// @notice Gas of one call of a desk: the vault and all other desks included, calldata, the 21,000 of a transaction and
/// the game not.
abstract contract MarketMeter is MarketDeployment {
    modifier metered() {
        vm.pauseGasMetering();
        _;
        vm.pauseGasMetering();
    }

    /// @dev Games that cost next to nothing take the places of those that write down what they are told.
    function _cheapGames() internal {
        bytes memory code = address(new CheapGame()).code;
        vm.etch(address(game), code);
        vm.etch(address(profileGame), code);
        vm.etch(address(objectionGame), code);
        vm.etch(address(counterclaimGame), code);
    }

    /// @dev What comes next is measured, as the first call of a transaction.
    function _begin(address caller) internal {
        // Each by its name: what names the desk in the test's own storage is read by this, and no part of the call's gas.
        address[16] memory contracts = [
            address(vault),
            address(registry),
            address(seats),
            address(proofs),
            address(profiles),
            address(verdicts),
            address(challenges),
            address(objections),
            address(counterclaims),
            address(demands),
            address(settlement),
            address(auction),
            address(sortition),
            address(jackpot),
            address(beacon),
            address(provenSteps)
        ];
        for (uint256 i = 0; i < contracts.length; ++i) {
            vm.cool(contracts[i]);
        }
        vm.prank(caller);
        vm.resumeGasMetering();
    }
}

/// @notice A task of four segments, three of which are drawn.
abstract contract MarketGasBase is MarketMeter, MarketBase {
    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        s.draws = 3;
    }
}
