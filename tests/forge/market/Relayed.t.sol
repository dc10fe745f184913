// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC2771Forwarder} from "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol";
import {Forwarder} from "../../../contracts/incentives/Forwarder.sol";
import {IJackpot} from "../../../contracts/incentives/IJackpot.sol";
import {Relaying} from "../incentives/Relaying.sol";
import {DataDemandsBase} from "./DataDemandsBase.sol";

/// @notice What a watcher signs and a party of the task relays. Verbs about the life of a task: Transitions.t.sol.
contract RelayedTest is DataDemandsBase, Relaying {
    uint256 private constant SOLVER = 0x501;
    uint256 private constant WATCHER = 0x3a7;

    Forwarder private forwarder;

    function setUp() public override {
        (solver, watcher) = (vm.addr(SOLVER), vm.addr(WATCHER));
        super.setUp();
        // All desks trust the vault's forwarder. In this market it is the address zero, from which nobody but a test
        // can call.
        forwarder = Forwarder(vault.trustedForwarder());
        vm.etch(address(forwarder), address(new Forwarder()).code);
    }

    /// @dev A party may relay what it may not sign. Mallory names the watcher, and the desk sees Mallory.
    function test_a_watcher_commits() public {
        _toWatched(true, true);
        uint32 seating = registry.task(id).seating;
        vm.warp(verdicts.verdict(id).watchUntil);
        bytes memory data = abi.encodeCall(IJackpot.watch, (id, 0, "found"));
        address mallory = account("mallory");
        vm.prank(mallory);
        (bool done, bytes memory answer) = address(jackpot).call(abi.encodePacked(data, watcher));
        vm.assertFalse(done);
        vm.assertEq(answer, abi.encodeWithSelector(IJackpot.NotDrawn.selector, mallory, 0));
        vm.prank(address(forwarder));
        (done, answer) = address(jackpot).call(abi.encodePacked(data, solver));
        vm.assertEq(answer, abi.encodeWithSelector(IJackpot.IsParty.selector, id, solver));
        ERC2771Forwarder.ForwardRequestData memory request = _request(forwarder, WATCHER, address(jackpot), 0, data);
        vm.prank(solver);
        forwarder.execute(request);
        vm.assertEq(jackpot.commitments(id, seating, watcher, 0), "found");
        vm.assertEq(jackpot.commitments(id, seating, solver, 0), bytes32(0));
        vm.assertEq(sortition.trustedForwarder(), address(forwarder));
    }
}
