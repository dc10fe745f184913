// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DisputeGame} from "../../../contracts/dispute/DisputeGame.sol";
import {IOneStep} from "../../../contracts/dispute/IOneStep.sol";
import {IStarts} from "../../../contracts/dispute/IStarts.sol";
import {Base} from "../Base.sol";

/// @notice Deploys the court by the names of its contracts: `.ci/mutation/deployed.py` puts changed ones in their
/// place.
abstract contract Deployment is Base {
    function _deployOneStep() internal returns (IOneStep) {
        return IOneStep(vm.deployCode("OneStep.sol:OneStep"));
    }

    function _deployStarts() internal returns (IStarts) {
        return IStarts(vm.deployCode("Starts.sol:Starts"));
    }

    function _deployGame(address market, IOneStep oneStep, IStarts starts, uint8 width, uint24 replay, uint24 move)
        internal
        returns (DisputeGame game)
    {
        bytes memory code = abi.encodePacked(
            vm.getCode("DisputeGame.sol:DisputeGame"), abi.encode(market, oneStep, starts, width, replay, move)
        );
        assembly ("memory-safe") {
            game := create(0, add(code, 32), mload(code))
            if iszero(game) {
                let reason := mload(0x40)
                returndatacopy(reason, 0, returndatasize())
                revert(reason, returndatasize())
            }
        }
    }
}
