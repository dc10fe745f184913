// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice The cheatcodes that the tests use; forge implements them at one fixed address.
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    struct Gas {
        uint64 gasLimit;
        uint64 gasTotalUsed;
        uint64 gasMemoryUsed;
        int64 gasRefunded;
        uint64 gasRemaining;
    }

    function addr(uint256 privateKey) external pure returns (address);
    function assertEq(uint256 left, uint256 right) external pure;
    function assertEq(uint256 left, uint256 right, string calldata message) external pure;
    function assertEq(int256 left, int256 right) external pure;
    function assertEq(bytes32 left, bytes32 right) external pure;
    function assertEq(bytes32 left, bytes32 right, string calldata message) external pure;
    function assertEq(bytes calldata left, bytes calldata right) external pure;
    function assertEq(bytes calldata left, bytes calldata right, string calldata message) external pure;
    function assertEq(address left, address right) external pure;
    function assertEq(string calldata left, string calldata right, string calldata message) external pure;
    function assertEq(bool left, bool right) external pure;
    function assertNotEq(uint256 left, uint256 right) external pure;
    function assertNotEq(bytes32 left, bytes32 right) external pure;
    function assertTrue(bool condition) external pure;
    function assertTrue(bool condition, string calldata message) external pure;
    function assertFalse(bool condition) external pure;
    function assertFalse(bool condition, string calldata message) external pure;
    function assertLt(uint256 left, uint256 right) external pure;
    function assertLe(uint256 left, uint256 right) external pure;
    function assertLe(uint256 left, uint256 right, string calldata message) external pure;
    function assertGe(uint256 left, uint256 right) external pure;
    function assertGt(uint256 left, uint256 right) external pure;
    function cool(address account) external;
    function deal(address account, uint256 balance) external;
    function deployCode(string calldata artifactPath) external returns (address);
    function deployCode(string calldata artifactPath, bytes calldata arguments) external returns (address);
    function etch(address account, bytes calldata code) external;
    function expectEmit() external;
    function expectEmit(address emitter) external;
    function expectRevert() external;
    function expectRevert(bytes4 selector) external;
    function expectRevert(bytes calldata data) external;
    function expectPartialRevert(bytes4 selector) external;
    function fee(uint256 baseFee) external;
    function getCode(string calldata artifactPath) external view returns (bytes memory);
    function getBlockNumber() external view returns (uint256);
    function chainId(uint256 id) external;
    function getBlockTimestamp() external view returns (uint256);
    function getRecordedLogs() external returns (Log[] memory);
    function label(address account, string calldata name) external;
    function lastCallGas() external view returns (Gas memory);
    function load(address account, bytes32 slot) external view returns (bytes32);
    function parseBytes(string calldata text) external pure returns (bytes memory);
    function parseJson(string calldata json, string calldata key) external pure returns (bytes memory);
    function parseJsonBytes(string calldata json, string calldata key) external pure returns (bytes memory);
    function parseJsonBytes32(string calldata json, string calldata key) external pure returns (bytes32);
    function parseJsonBytes32Array(string calldata json, string calldata key) external pure returns (bytes32[] memory);
    function parseJsonBytesArray(string calldata json, string calldata key) external pure returns (bytes[] memory);
    function parseJsonKeys(string calldata json, string calldata key) external pure returns (string[] memory);
    function parseJsonTypeArray(string calldata json, string calldata key, string calldata form)
        external
        pure
        returns (bytes memory);
    function parseJsonUint(string calldata json, string calldata key) external pure returns (uint256);
    function parseJsonUintArray(string calldata json, string calldata key) external pure returns (uint256[] memory);
    function parseJsonString(string calldata json, string calldata key) external pure returns (string memory);
    function parseJsonStringArray(string calldata json, string calldata key) external pure returns (string[] memory);
    function parseUint(string calldata text) external pure returns (uint256);
    function pauseGasMetering() external;
    function prank(address sender) external;
    function prevrandao(uint256 value) external;
    function readFile(string calldata path) external view returns (string memory);
    function readLine(string calldata path) external view returns (string memory line);
    function recordLogs() external;
    function resumeGasMetering() external;
    function revertToState(uint256 snapshot) external returns (bool done);
    function roll(uint256 blockNumber) external;
    function sign(uint256 privateKey, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function snapshotState() external returns (uint256 snapshot);
    function split(string calldata text, string calldata by) external pure returns (string[] memory parts);
    function startPrank(address sender) external;
    function stopPrank() external;
    function store(address account, bytes32 slot, bytes32 value) external;
    function toString(uint256 value) external pure returns (string memory);
    function toString(bytes32 value) external pure returns (string memory);
    function warp(uint256 timestamp) external;
}

/// @notice Base of every forge test: the cheatcodes, a clamp for fuzzed numbers and rows of tables.
abstract contract Base {
    /// @dev The address is `keccak256("hevm cheat code")` cut to 20 bytes: forge fixes it.
    Vm internal constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    /// @dev Maps a fuzzed number into `[low, high]`; unlike `vm.assume` it throws no run away.
    function bound(uint256 value, uint256 low, uint256 high) internal pure returns (uint256) {
        unchecked {
            // `high - low + 1` is 0 only for the full range, where every value is fine already.
            uint256 size = high - low + 1;
            return size == 0 ? value : low + value % size;
        }
    }

    /// @dev One row of a table: a call of its own to this contract, after which all is as it was before. What is told of
    /// its failure begins with its name.
    function _row(string memory name, bytes memory row) internal {
        uint256 before = vm.snapshotState();
        (bool done, bytes memory answer) = address(this).call(row);
        vm.revertToState(before);
        if (done) return;
        if (answer.length < 68) revert(name);
        assembly ("memory-safe") {
            // Without the selector of `Error` or of the cheatcodes' error.
            mstore(add(answer, 4), sub(mload(answer), 4))
            answer := add(answer, 4)
        }
        revert(string.concat(name, ": ", abi.decode(answer, (string))));
    }

    /// @dev The next call is by `who`, and fails so.
    function _expectRefusal(address who, bytes memory why) internal {
        vm.expectRevert(why);
        vm.prank(who);
    }

    function _expectRefusal(address who, bytes4 why) internal {
        vm.expectRevert(why);
        vm.prank(who);
    }

    /// @dev An address with no code that is the same in every run.
    function account(string memory name) internal returns (address result) {
        result = address(uint160(uint256(keccak256(bytes(name)))));
        vm.label(result, name);
    }
}
