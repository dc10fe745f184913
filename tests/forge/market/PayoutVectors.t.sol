// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice What `pol.incentives.payouts` computes is what the market credits, for every row and odd amounts.
contract PayoutVectorsTest is MarketBase {
    string private json;
    string private deal;
    address[5] private parties;
    uint256[5] private before;

    function setUp() public override {
        json = vm.readFile("fixtures/vectors/payouts.json");
        deal = ".deals[0]";
        super.setUp();
        parties = [submitter, solver, verifier, challenger, treasury];
    }

    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        s.solverStake = uint128(_amount("solver_stake"));
        s.verifierStake = uint128(_amount("verifier_stake"));
        s.bond = uint128(_amount("bond"));
        s.verifierFee = uint128(_amount("verifier_fee"));
    }

    function test_accepted() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _open();
            _toVerdict(true);
            _mark();
            _pass(20 minutes + 1);
            market.settle(id);
            _expectRow("accepted");
        }
    }

    function test_rejected() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _open();
            _toVerdict(false);
            _mark();
            _pass(20 minutes + 1);
            market.settle(id);
            _expectRow("rejected");
        }
    }

    function test_disputes() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _open();
            _toDisputed(true);
            _mark();
            game.finish(true);
            _expectRow("challengerWrong");
            for (uint256 failures = 1; failures < 5; ++failures) {
                _challenge();
                game.finish(true);
            }
            _challenge();
            _mark();
            game.finish(true);
            _expectRow("challengerWrongAgain");
            _open();
            _toDisputed(true);
            _mark();
            game.finish(false);
            _expectRow("challengerRight");
            _open();
            _toVerdict(true);
            _challenge(nextVerifier);
            _challenge();
            uint256 first = game.disputes() - 1;
            game.report(first, false);
            _mark();
            market.releaseBond(first + 1);
            _expectRow("challengeMoot");
            _open();
            _toVerdict(true);
            for (uint256 failures = 0; failures < 5; ++failures) {
                _challenge();
                game.finish(true);
            }
            _challenge();
            _mark();
            game.finish(false);
            _expectRow("challengerRightAtLast");
        }
    }

    function test_defaults() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _open();
            _toTraining();
            _mark();
            _pass(1 hours + 1);
            market.claimSolverDefault(id);
            _expectRow("solverDefaulted");
            _open();
            _toDrawn();
            _mark();
            _pass(30 minutes + 1);
            market.claimVerifierDefault(id);
            _expectRow("verifierDefaulted");
        }
    }

    function test_cancelled() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _open();
            _submit();
            _join(verifier);
            _mark();
            vm.prank(submitter);
            market.cancelTask(id);
            _expectRow("cancelled");
        }
    }

    function _begin(uint256 index) private returns (bool more) {
        deal = string.concat(".deals[", vm.toString(index), "]");
        return index < vm.parseJsonUint(json, ".count");
    }

    /// @dev The next task of the same submitter, with the amounts of the current deal.
    function _open() private {
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.deal(parties[i], 1 << 120);
        }
        vm.deal(nextVerifier, 1 << 120);
        (_fee, _price) = (_amount("fee"), uint128(_amount("price")));
        id = market.computeTaskId(submitter, market.nonces(submitter), _terms());
    }

    function _mark() private {
        for (uint256 i = 0; i < parties.length; ++i) {
            before[i] = market.credits(parties[i]);
        }
    }

    function _expectRow(string memory row) private view {
        string[5] memory names = ["submitter", "solver", "verifier", "challenger", "treasury"];
        for (uint256 i = 0; i < parties.length; ++i) {
            uint256 expected = _amount(string.concat(row, ".", names[i]));
            vm.assertEq(market.credits(parties[i]) - before[i], expected, string.concat(deal, row, names[i]));
        }
    }

    function _amount(string memory field) private view returns (uint256) {
        return vm.parseJsonUint(json, string.concat(deal, ".", field));
    }
}
