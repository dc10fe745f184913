// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {RecordDemands} from "./RecordDemands.sol";
import {CheckpointLog} from "./CheckpointLog.sol";
import {ILearningLog, Run, RunStatus} from "./ILearningLog.sol";

/// @title LearningLog
/// @notice Heads of learning records. What is posted for a run only ever extends what was posted before. See
/// `ILearningLog`.
/// @dev Nobody administers it.
contract LearningLog is RecordDemands {
    bytes32 private constant DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant HEAD = keccak256("Head(bytes32 id,uint64 size,bytes32 logRoot)");
    uint32 private constant MIN_WINDOW = 1 minutes;
    uint32 private constant MAX_WINDOW = 90 days;
    uint32 private constant MAX_EXIT_DELAY = 730 days;

    /// @inheritdoc ILearningLog
    function open(bytes32 run, uint32 window, uint32 exitDelay, uint128 price) external payable returns (bytes32 id) {
        if (run == 0) revert ZeroHash();
        if (window < MIN_WINDOW || window > MAX_WINDOW) revert InvalidWindow(window);
        if (exitDelay < window || exitDelay > MAX_EXIT_DELAY) revert InvalidExitDelay(exitDelay);
        if (msg.value > type(uint128).max) revert StakeTooHigh(msg.value);
        id = computeId(msg.sender, run);
        Run storage r = _runs[id];
        if (r.status != RunStatus.None) revert AlreadyOpen(id);
        r.publisher = msg.sender;
        r.window = window;
        r.stake = uint128(msg.value);
        r.posted = uint48(block.timestamp);
        r.exitDelay = exitDelay;
        r.status = RunStatus.Open;
        r.price = price;
        emit Opened(id, msg.sender, run, msg.value, window, exitDelay, price);
    }

    /// @inheritdoc ILearningLog
    function post(bytes32 id, uint64 size, bytes32 logRoot, bytes32[] calldata path) external {
        _post(id, size, logRoot, path, msg.sender);
    }

    /// @inheritdoc ILearningLog
    function postSigned(bytes32 id, uint64 size, bytes32 logRoot, bytes32[] calldata path, bytes calldata signature)
        external
    {
        _post(id, size, logRoot, path, _signer(keccak256(abi.encode(HEAD, id, size, logRoot)), signature));
    }

    /// @inheritdoc ILearningLog
    function runOf(bytes32 id) external view returns (Run memory) {
        return _runs[id];
    }

    /// @inheritdoc ILearningLog
    function computeId(address publisher, bytes32 run) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), publisher, run));
    }

    function _post(bytes32 id, uint64 size, bytes32 logRoot, bytes32[] calldata path, address poster) private {
        Run storage r = _expectOpen(id);
        if (poster != r.publisher) revert NotPublisher(poster);
        uint64 posted = r.size;
        if (size <= posted) revert NotLonger(posted, size);
        if (logRoot == 0) revert ZeroHash();
        if (!CheckpointLog.isConsistent(posted, r.logRoot, size, logRoot, path)) revert NotAnExtension(posted, size);
        r.size = size;
        r.logRoot = logRoot;
        r.posted = uint48(block.timestamp);
        emit Posted(id, size, logRoot);
    }

    function _signer(bytes32 content, bytes calldata signature) private view returns (address signer) {
        if (signature.length != 65) revert WrongSignature();
        bytes32 domain =
            keccak256(abi.encode(DOMAIN, keccak256("pol learning log"), keccak256("1"), block.chainid, address(this)));
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", domain, content));
        signer = ecrecover(digest, uint8(signature[64]), bytes32(signature), bytes32(signature[32:]));
        if (signer == address(0)) revert WrongSignature();
    }
}
