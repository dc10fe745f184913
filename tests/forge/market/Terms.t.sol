// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "../../../contracts/market/ISettlement.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice What the terms of a task may say: the registry takes and refuses the rows of fixtures/vectors/terms.jsonl,
/// and names the field that breaks a bound.
contract TermsTest is MarketBase {
    string private constant PATH = "fixtures/vectors/terms.jsonl";

    function test_rows() public {
        string memory ordinary = vm.readLine(PATH);
        string[] memory names = vm.parseJsonKeys(ordinary, ".terms");
        uint256 count = 0;
        for (string memory row = vm.readLine(PATH); bytes(row).length > 0; row = vm.readLine(PATH)) {
            Terms memory s = abi.decode(_words(names, ordinary, row), (Terms));
            string memory refused = vm.parseJsonString(row, ".refused");
            vm.prank(submitter);
            (bool taken, bytes memory answer) = address(registry).call(abi.encodeCall(registry.submit, (s)));
            vm.assertTrue(taken == (bytes(refused).length == 0), row);
            bytes memory reason = abi.encodeWithSelector(ITaskRegistry.InvalidTerms.selector, refused);
            if (!taken) vm.assertEq(answer, reason, row);
            ++count;
        }
        vm.assertGt(count, 100);
    }

    function test_a_price_that_no_desk_could_hold() public {
        Terms memory s = _terms();
        (s.workUnits, s.unitPrice, s.secondPrice) = (1 << 112, 1 << 112, 0);
        _expectRefusal(submitter, abi.encodeWithSelector(ISettlement.PriceTooHigh.selector, uint256(1 << 112)));
        registry.submit(s);
    }

    /// @dev The fields are words in the order of the struct.
    function _words(string[] memory names, string memory ordinary, string memory row)
        private
        pure
        returns (bytes memory words)
    {
        string[] memory changes = vm.parseJsonKeys(row, ".changes");
        for (uint256 i = 0; i < names.length; ++i) {
            (string memory json, string memory place) = (ordinary, string.concat(".terms.", names[i]));
            for (uint256 k = 0; k < changes.length; ++k) {
                if (keccak256(bytes(changes[k])) != keccak256(bytes(names[i]))) continue;
                (json, place) = (row, string.concat(".changes.", names[i]));
            }
            words = abi.encodePacked(words, vm.parseJsonUint(json, place));
        }
    }
}
