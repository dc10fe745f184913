// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk} from "../incentives/Desk.sol";

/// @title Announcements
/// @notice Whoever is paid for showing something has announced it in an earlier block, by a digest that binds it and
/// the party: who copies what is shown comes a block too late (docs/spec/market.md, "Announcements").
abstract contract Announcements is Desk {
    /// @notice The block of the first announcement of a digest; zero if there was none.
    mapping(bytes32 digest => uint256 number) public announcedAt;

    /// @notice The digest was announced for the first time, in block `number`.
    event Announced(bytes32 indexed digest, uint256 number);
    /// @notice The caller has not announced this in an earlier block: the digest is the one that is missing.
    error NotAnnounced(bytes32 digest);

    /// @notice Anybody, for whoever the digest binds. The first announcement stays, further ones change nothing.
    /// @param digest `keccak256(abi.encode(party, taskId, evidence))`, where `evidence` is the hash that the verb names
    /// which shows it.
    function announce(bytes32 digest) external {
        if (announcedAt[digest] != 0) return;
        announcedAt[digest] = block.number;
        emit Announced(digest, block.number);
    }

    function _requireAnnounced(bytes32 taskId, bytes32 evidence) internal view {
        bytes32 digest = keccak256(abi.encode(_party(), taskId, evidence));
        uint256 number = announcedAt[digest];
        if (number == 0 || number >= block.number) revert NotAnnounced(digest);
    }
}
