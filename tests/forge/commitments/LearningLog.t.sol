// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ILearningLog, Run, RunStatus} from "../../../contracts/commitments/ILearningLog.sol";
import {LearningLogBase, NaiveLog} from "./LearningLogBase.sol";

/// @notice What is posted for a run only ever extends what was posted before, by its publisher.
contract LearningLogTest is LearningLogBase {
    uint256 private constant MAX = 9;

    /// @dev No data is looked at here: entries are any hashes.
    function _roots(uint256 size) internal pure override returns (bytes32[] memory roots) {
        roots = new bytes32[](size);
        for (uint256 i = 0; i < size; ++i) {
            roots[i] = keccak256(abi.encode("entry", i));
        }
    }

    function test_open() public {
        bytes32 expected = keccak256(abi.encode(block.chainid, address(logs), publisher, RUN));
        vm.expectEmit(address(logs));
        emit ILearningLog.Opened(expected, publisher, RUN, STAKE, WINDOW, EXIT_DELAY, PRICE);
        _open();
        vm.assertEq(id, expected);
        Run memory r = logs.runOf(id);
        vm.assertEq(
            keccak256(abi.encode(r)),
            keccak256(
                abi.encode(
                    Run(publisher, 0, WINDOW, 0, uint128(STAKE), uint48(START), EXIT_DELAY, 0, RunStatus.Open, PRICE)
                )
            )
        );
        vm.assertEq(address(logs).balance, STAKE);
    }

    function test_an_id_is_that_of_chain_contract_publisher_and_name() public {
        bytes32 expected = keccak256(abi.encodePacked(block.chainid, abi.encode(address(logs), publisher, RUN)));
        vm.assertEq(logs.computeId(publisher, RUN), expected);
        _open();
        vm.assertEq(id, expected);
    }

    function test_open_refuses() public {
        _open();
        vm.startPrank(publisher);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.AlreadyOpen.selector, id));
        logs.open(RUN, WINDOW, EXIT_DELAY, 0);
        vm.expectRevert(ILearningLog.ZeroHash.selector);
        logs.open(0, WINDOW, EXIT_DELAY, 0);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.InvalidWindow.selector, 59));
        logs.open("x", 59, EXIT_DELAY, 0);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.InvalidWindow.selector, 90 days + 1));
        logs.open("x", 90 days + 1, 365 days, 0);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.InvalidExitDelay.selector, 59));
        logs.open("x", 60, 59, 0);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.InvalidExitDelay.selector, 730 days + 1));
        logs.open("x", 60, 730 days + 1, 0);
        vm.deal(publisher, 2 ** 128);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.StakeTooHigh.selector, 2 ** 128));
        logs.open{value: 2 ** 128}("x", 60, 60, 0);
        logs.open("x", 60, 60, 0);
        logs.open("y", 90 days, 730 days, 0);
        logs.open{value: 2 ** 128 - 1}("z", 90 days, 90 days, type(uint128).max);
    }

    /// @dev Rewriting any entry that was posted is refused, with the honest path and with that of the new history.
    function testFuzz_history_is_never_rewritten(uint64 m, uint64 n, uint256 changed) public {
        n = uint64(bound(n, 2, MAX));
        m = uint64(bound(m, 1, n - 1));
        _open();
        _post(m);
        bytes32[] memory roots = _roots(n);
        bytes32[] memory honest = NaiveLog.consistencyPath(roots, m, n);
        roots[bound(changed, 0, m - 1)] = keccak256("other");
        bytes32[] memory other = NaiveLog.consistencyPath(roots, m, n);
        bytes32 root = NaiveLog.root(roots, 0, n);
        bytes memory refusal = abi.encodeWithSelector(ILearningLog.NotAnExtension.selector, m, n);
        vm.startPrank(publisher);
        vm.expectRevert(refusal);
        logs.post(id, n, root, honest);
        vm.expectRevert(refusal);
        logs.post(id, n, root, other);
        vm.stopPrank();
        _post(n);
    }

    function test_post_refuses() public {
        _open();
        bytes32[] memory none = new bytes32[](0);
        _expectRefusal(stranger, abi.encodeWithSelector(ILearningLog.NotPublisher.selector, stranger));
        logs.post(id, 1, "root", none);
        vm.startPrank(publisher);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.NotOpen.selector, bytes32("none"), RunStatus.None));
        logs.post("none", 1, "root", none);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.NotLonger.selector, 0, 0));
        logs.post(id, 0, "root", none);
        vm.expectRevert(ILearningLog.ZeroHash.selector);
        logs.post(id, 1, 0, none);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.NotAnExtension.selector, 0, 1));
        logs.post(id, 1, "root", new bytes32[](1));
        vm.stopPrank();
        _post(4);
        bytes32 root = logs.runOf(id).logRoot;
        vm.startPrank(publisher);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.NotLonger.selector, 4, 4));
        logs.post(id, 4, root, none);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.NotLonger.selector, 4, 3));
        logs.post(id, 3, root, none);
        vm.stopPrank();
    }

    function test_anybody_relays_a_signed_head() public {
        _open();
        bytes32[] memory roots = _roots(5);
        for (uint64 size = 2; size <= 5; size += 3) {
            bytes32 root = NaiveLog.root(roots, 0, size);
            bytes32[] memory path = NaiveLog.consistencyPath(roots, logs.runOf(id).size, size);
            bytes memory signature = _sign(PUBLISHER_KEY, id, size, root);
            vm.prank(stranger);
            logs.postSigned(id, size, root, path, signature);
            vm.assertEq(logs.runOf(id).logRoot, root);
            vm.expectRevert(abi.encodeWithSelector(ILearningLog.NotLonger.selector, size, size));
            logs.postSigned(id, size, root, path, signature);
        }
    }

    function test_a_head_signed_wrongly() public {
        _open();
        bytes32 root = _logRoot(2);
        bytes32[] memory none = new bytes32[](0);
        bytes memory other = _sign(0xbad, id, 2, root);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.NotPublisher.selector, vm.addr(0xbad)));
        logs.postSigned(id, 2, root, none, other);
        bytes memory good = _sign(PUBLISHER_KEY, id, 2, root);
        vm.expectPartialRevert(ILearningLog.NotPublisher.selector);
        logs.postSigned(id, 3, root, none, good);
        vm.expectPartialRevert(ILearningLog.NotPublisher.selector);
        logs.postSigned(id, 2, "root", none, good);
        vm.expectRevert(ILearningLog.WrongSignature.selector);
        logs.postSigned(id, 2, root, none, abi.encodePacked(good, uint8(0)));
        vm.expectRevert(ILearningLog.WrongSignature.selector);
        logs.postSigned(id, 2, root, none, new bytes(65));
        vm.expectRevert(ILearningLog.WrongSignature.selector);
        logs.postSigned(id, 2, root, none, "");
    }

    /// @dev A run of the same publisher and name on another contract is another run.
    function test_a_signature_for_another_contract() public {
        _open();
        bytes memory signature = _sign(PUBLISHER_KEY, id, 2, _logRoot(2));
        setUp();
        _open();
        bytes32 root = _logRoot(2);
        vm.expectPartialRevert(ILearningLog.NotPublisher.selector);
        logs.postSigned(id, 2, root, new bytes32[](0), signature);
    }

    function _sign(uint256 key, bytes32 id_, uint64 size, bytes32 root) private view returns (bytes memory) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("pol learning log"),
                keccak256("1"),
                block.chainid,
                address(logs)
            )
        );
        bytes32 content =
            keccak256(abi.encode(keccak256("Head(bytes32 id,uint64 size,bytes32 logRoot)"), id_, size, root));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, keccak256(abi.encodePacked(hex"1901", domain, content)));
        return abi.encodePacked(r, s, v);
    }
}
