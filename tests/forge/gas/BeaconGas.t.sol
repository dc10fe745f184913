// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DrandBeacon} from "../../../contracts/market/DrandBeacon.sol";
import {G1Point} from "../../../contracts/market/Quicknet.sol";
import {Drand} from "../market/Drand.sol";

/// @notice Gas of a signature of drand, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without calldata and
/// the 21,000 of a transaction.
contract BeaconGas is Drand {
    uint64 private constant ROUND = 30_662_990;
    DrandBeacon private drand = new DrandBeacon(60);
    G1Point private signature = signatureOf(ROUND);

    function setUp() public {
        vm.warp(drand.timeOf(ROUND));
    }

    function test_drand_submit() public {
        drand.submit(ROUND, signature);
    }
}
