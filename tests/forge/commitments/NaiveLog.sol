// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice The definitions of RFC 9162, section 2.1, letter by letter and recursively: slow, and obviously right. Makes
/// the proofs that the contract verifies iteratively.
library NaiveLog {
    /// @notice MTH(D[from:to]), to > from. (section 2.1.1)
    function root(bytes32[] memory entries, uint256 from, uint256 to) internal pure returns (bytes32) {
        if (to - from == 1) return sha256(abi.encodePacked(hex"00", entries[from]));
        uint256 middle = from + split(to - from);
        return sha256(abi.encodePacked(hex"01", root(entries, from, middle), root(entries, middle, to)));
    }

    /// @notice PATH(m, D[from:to]), m counted from `from`. (section 2.1.3.1)
    function inclusionPath(bytes32[] memory entries, uint256 m, uint256 from, uint256 to)
        internal
        pure
        returns (bytes32[] memory)
    {
        if (to - from == 1) return new bytes32[](0);
        uint256 k = split(to - from);
        if (m < k) return append(inclusionPath(entries, m, from, from + k), root(entries, from + k, to));
        return append(inclusionPath(entries, m - k, from + k, to), root(entries, from, from + k));
    }

    /// @notice PROOF(m, D[0:n]), 0 < m < n; empty for m = 0 and m = n. (section 2.1.4.1)
    function consistencyPath(bytes32[] memory entries, uint256 m, uint256 n) internal pure returns (bytes32[] memory) {
        if (m == 0) return new bytes32[](0);
        return _subproof(entries, m, 0, n, true);
    }

    /// @notice The largest power of two smaller than n, n > 1.
    function split(uint256 n) internal pure returns (uint256 k) {
        k = 1;
        while (k * 2 < n) k *= 2;
    }

    function append(bytes32[] memory path, bytes32 last) internal pure returns (bytes32[] memory longer) {
        longer = new bytes32[](path.length + 1);
        for (uint256 i = 0; i < path.length; ++i) {
            longer[i] = path[i];
        }
        longer[path.length] = last;
    }

    function _subproof(bytes32[] memory entries, uint256 m, uint256 from, uint256 to, bool complete)
        private
        pure
        returns (bytes32[] memory)
    {
        if (m == to - from) return complete ? new bytes32[](0) : append(new bytes32[](0), root(entries, from, to));
        uint256 k = split(to - from);
        if (m <= k) return append(_subproof(entries, m, from, from + k, complete), root(entries, from + k, to));
        return append(_subproof(entries, m - k, from + k, to, false), root(entries, from, from + k));
    }
}
