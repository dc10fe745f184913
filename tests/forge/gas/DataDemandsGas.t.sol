// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Piece} from "../../../contracts/commitments/StateLeaf.sol";
import {DataDemand} from "../../../contracts/market/IDataDemands.sol";
import {DataDemandsBase} from "../market/DataDemandsBase.sol";
import {MarketMeter} from "./MarketGasBase.sol";

/// @notice Gas of demands for data and of their ends, on record in .ci/gas.json. States of three slots, the first of
/// three leaves.
contract DataDemandsGas is MarketMeter, DataDemandsBase {
    function test_data_demand() public metered {
        _toCommitted();
        uint256 bond = demands.bondOf();
        _begin(challenger);
        demands.demand(id, 1, 0, 1, bond);
    }

    function test_data_answer() public metered {
        _toCommitted();
        DataDemand memory d = _demand(challenger);
        Piece memory piece = _piece(d.entry, d.position, d.leaf);
        _begin(solver);
        demands.answer(d, piece);
    }

    /// @dev The solver's stake is split, and another auction begins.
    function test_data_withheld() public metered {
        _toCommitted();
        DataDemand memory d = _demand(challenger);
        vm.warp(d.deadline + 1);
        _begin(challenger);
        demands.expire(d);
    }
}
