// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Descriptor} from "../../../contracts/dispute/Descriptor.sol";
import {Distance} from "../../../contracts/dispute/Distance.sol";
import {Position} from "../../../contracts/dispute/Position.sol";
import {Walk} from "../../../contracts/dispute/Walk.sol";

/// @notice The rules without players, clocks and storage.
contract WalkHarness {
    function startReplay(
        bytes calldata header,
        bytes32 program,
        uint64 firstStep,
        uint64 steps,
        bytes32 start,
        bytes32 end
    ) external pure returns (Position memory) {
        return Walk.startReplay(Descriptor.header(header, program), firstStep, steps, start, end);
    }

    function startSum(uint32 slots, uint8 component, bytes32 x, bytes32 y, uint256 sum)
        external
        pure
        returns (Position memory)
    {
        return Walk.startSum(slots, component, x, y, sum);
    }

    function open(Position memory p, bytes calldata payload, bytes32 program) external pure returns (Position memory) {
        Walk.open(p, payload, program);
        return p;
    }

    function pick(Position memory p, uint256 index, bytes calldata payload) external pure returns (Position memory) {
        Walk.pick(p, index, payload);
        return p;
    }

    function pickState(Position memory p) external pure returns (Position memory) {
        Walk.pickState(p);
        return p;
    }

    function describe(Position memory p, bytes32[] calldata branch, bytes calldata descriptor, bytes32 tree)
        external
        pure
        returns (Position memory)
    {
        Walk.describe(p, branch, descriptor, tree);
        return p;
    }

    function describeSlot(
        Position memory p,
        bytes calldata header,
        bytes32 program,
        bytes32[] calldata branch,
        bytes calldata descriptor
    ) external pure returns (bool, Position memory) {
        return (Walk.describeSlot(p, Descriptor.header(header, program), branch, descriptor), p);
    }

    function distance(uint32 x, uint32 y, uint256 dtype, uint256 scale) external pure returns (uint256) {
        return Distance.ofWords(x, y, dtype, scale);
    }

    function add(uint256 a, uint256 b) external pure returns (uint256) {
        return Distance.add(a, b);
    }

    function tail(bytes calldata data, uint256 from) external pure returns (bytes memory) {
        return data[from:];
    }
}
