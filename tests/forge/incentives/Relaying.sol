// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC2771Forwarder} from "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol";
import {Base} from "../Base.sol";

/// @notice Signs requests to a forwarder as EIP-712 says, without the forwarder's help.
abstract contract Relaying is Base {
    uint48 internal constant NEVER = type(uint48).max;

    function _domain(address verifier, string memory name) internal view returns (bytes32) {
        bytes32 form = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
        return keccak256(abi.encode(form, keccak256(bytes(name)), keccak256("1"), block.chainid, verifier));
    }

    function _signature(uint256 key, bytes32 domain, bytes32 content) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, keccak256(abi.encodePacked("\x19\x01", domain, content)));
        return abi.encodePacked(r, s, v);
    }

    /// @dev A request of the key's owner for a call with the forwarder's current nonce.
    function _request(ERC2771Forwarder forwarder, uint256 key, address to, uint256 value, bytes memory data)
        internal
        view
        returns (ERC2771Forwarder.ForwardRequestData memory request)
    {
        request.from = vm.addr(key);
        (request.to, request.value, request.gas, request.deadline, request.data) = (to, value, 1_000_000, NEVER, data);
        bytes32 content = keccak256(
            abi.encode(
                keccak256(
                    "ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,uint48 deadline,bytes data)"
                ),
                request.from,
                to,
                value,
                request.gas,
                forwarder.nonces(request.from),
                NEVER,
                keccak256(data)
            )
        );
        request.signature = _signature(key, _domain(address(forwarder), "pol forwarder"), content);
    }
}
