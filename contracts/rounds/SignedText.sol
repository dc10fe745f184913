// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";

/// @title SignedText
/// @notice What canonical JSON documents say whose digest somebody has signed (docs/spec/rounds.md, "On a chain").
/// @dev The caller says where something stands. Quotation marks within a string are escaped in JSON, so a text that
/// begins with one, as all does that is looked for here, stands in no name that a stranger has chosen.
library SignedText {
    /// @notice The text doesn't have what is expected at this byte.
    error OtherText(uint256 offset);

    /// @notice The place of who is no member: no list is as long.
    uint256 internal constant NOWHERE = type(uint256).max;
    /// @notice A roster that is provisional begins its round.
    bytes32 internal constant ITSELF = bytes32(type(uint256).max);
    uint256 private constant ADDRESS_DIGITS = 40;
    uint256 private constant MOST_DIGITS = 20;
    /// @dev Bytes of `{"joined":0,"role":"","seat":0,"weight":0,"worker":"0x` and of 40 digits and a quotation mark.
    uint256 private constant SHORTEST = 95;
    /// @dev `},{"j` and `}],"p`.
    uint256 private constant BETWEEN = 0x7d2c7b226a;
    uint256 private constant BEHIND = 0x7d5d2c2270;
    /// @dev In each byte: one, all bits but the highest, and `]`.
    uint256 private constant ONES = 0x0101010101010101010101010101010101010101010101010101010101010101;
    uint256 private constant LOW = 0x7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f;
    uint256 private constant BRACKETS = ONES * 0x5d;

    /// @notice The seat of a worker in a roster: at byte `offset` stands `"seat":S,"weight":W,"worker":"0x..`.
    function seatOf(bytes calldata roster, uint256 offset, address worker) internal pure returns (uint256 seat) {
        (seat, offset) = _decimal(roster, _skip(roster, offset, "\"seat\":", 7));
        // Only where it ends matters.
        // slither-disable-next-line unused-return
        (, offset) = _decimal(roster, _skip(roster, offset, ",\"weight\":", 10));
        uint256 end = _skip(roster, offset, ",\"worker\":\"0x", 13) + ADDRESS_DIGITS + 1;
        if (end > roster.length || !_isOf(roster, end, _digits(worker))) revert OtherText(offset);
    }

    /// @notice Is this worker the member at a place of a roster? `"members":[` stands at byte `offset`.
    function isMember(bytes calldata roster, uint256 offset, uint256 place, address worker)
        internal
        pure
        returns (bool)
    {
        offset = _skip(roster, offset, "\"members\":[", 11);
        for (; place > 0; --place) {
            offset = _end(roster, offset) + 2;
            if (roster[offset - 1] != ",") revert OtherText(offset);
        }
        return _isOf(roster, _end(roster, offset), _digits(worker));
    }

    /// @notice The place of a worker in a roster, or `NOWHERE`; `"members":[` stands at byte `offset`.
    function placeOf(bytes calldata roster, uint256 offset, address worker) internal pure returns (uint256 place) {
        bytes32[2] memory digits = _digits(worker);
        uint256 end = _end(roster, _skip(roster, offset, "\"members\":[", 11));
        for (; !_isOf(roster, end, digits); ++place) {
            if (roster[end + 1] != ",") return NOWHERE;
            end = _end(roster, end + 2);
        }
    }

    /// @notice The partner of the member at a place; `"partners":[` stands at byte `offset`.
    function partnerOf(bytes calldata roster, uint256 offset, uint256 place) internal pure returns (uint256) {
        return _numberOf(roster, _skip(roster, offset, "\"partners\":[", 12), place);
    }

    /// @notice The place that a roster gives for a part; `"routes":[[` stands at byte `offset`.
    function routeOf(bytes calldata roster, uint256 offset, uint256 part, uint256 place)
        internal
        pure
        returns (uint256)
    {
        offset = _skip(roster, offset, "\"routes\":[[", 11);
        if (part > 0) offset = _skip(roster, _closing(roster, offset, part), "],[", 3);
        return _numberOf(roster, offset, place);
    }

    /// @notice The claim that a roster takes at a place of its arrivals: the place of its author, and its round;
    /// `"arrivals":[` stands at byte `offset`.
    function arrivalOf(bytes calldata roster, uint256 offset, uint256 place)
        internal
        pure
        returns (uint256 member, uint256 round)
    {
        offset = _skip(roster, offset, "\"arrivals\":[", 12);
        for (uint256 i = 0;; ++i) {
            (member, offset) = _decimal(roster, _skip(roster, offset, "{\"member\":", 10));
            (round, offset) = _decimal(roster, _skip(roster, offset, ",\"round\":", 9));
            offset = _skip(roster, offset, "}", 1);
            if (i == place) return (member, round);
            offset = _skip(roster, offset, ",", 1);
        }
    }

    /// @notice By which roster its round has begun: `ITSELF` if this one is provisional; else the digest of that one,
    /// or zero if the round has none. `"provisional":` stands at byte `offset`.
    function beginOf(bytes calldata roster, uint256 offset) internal pure returns (bytes32) {
        offset = _skip(roster, offset, "\"provisional\":", 14);
        if (roster[offset] == "t") return ITSELF;
        if (roster[offset] == "\"") return bytes32(hexadecimal(roster[offset + 1:offset + 65]));
        // Reverts if it is anything else.
        // slither-disable-next-line unused-return
        _skip(roster, offset, "false", 5);
        return 0;
    }

    /// @notice Reverts unless the list of members and that of routes stand at these bytes.
    function requireLists(bytes calldata roster, uint256 members, uint256 routes) internal pure {
        // slither-disable-next-line unused-return
        _skip(roster, members, "\"members\":[", 11);
        // slither-disable-next-line unused-return
        _skip(roster, routes, "\"routes\":[", 10);
    }

    /// @notice The digest of the roster that an entry of a log is about; reverts if it is another entry.
    function documentOf(bytes calldata entry) internal pure returns (bytes32) {
        uint256 offset = _skip(entry, 0, "{\"document\":\"", 13);
        return bytes32(hexadecimal(entry[offset:offset + 64]));
    }

    /// @notice Is a byte of a text zero, as none of a roster is? Zeros cost less than a byte of an answer earns.
    function hasZero(bytes calldata text) internal pure returns (bool) {
        uint256 found;
        assembly ("memory-safe") {
            let place := text.offset
            let end := add(place, text.length)
            for {} iszero(gt(add(place, 64), end)) { place := add(place, 64) } {
                // One is taken from each byte: only a zero, or what is above one, gets a highest bit that it hadn't.
                let one := calldataload(place)
                let other := calldataload(add(place, 32))
                found := or(found, or(and(sub(one, ONES), not(one)), and(sub(other, ONES), not(other))))
            }
            for {} lt(place, end) { place := add(place, 1) } {
                if iszero(byte(0, calldataload(place))) { found := not(0) }
            }
        }
        return found & ~LOW != 0;
    }

    /// @notice The number that hexadecimal digits in lower case write; at most 64 of them.
    function hexadecimal(bytes calldata digits) internal pure returns (uint256 number) {
        for (uint256 i = 0; i < digits.length; ++i) {
            uint256 digit = uint8(digits[i]);
            if (digit >= 0x61 && digit <= 0x66) digit -= 0x57;
            else if (digit >= 0x30 && digit <= 0x39) digit -= 0x30;
            else revert OtherText(i);
            number = number << 4 | digit;
        }
    }

    /// @dev Where the member ends that begins at byte `offset`: at a brace before `,{"j` or `],"p`. A string can't hold
    /// these five bytes, nor end with four of them: a comma comes after it. Bytes are looked at by 32 at a time: who
    /// shows a roster is paid by the byte, and one at a time costs more than that.
    function _end(bytes calldata roster, uint256 offset) private pure returns (uint256 end) {
        uint256 last = roster.length < 5 ? 0 : roster.length - 5;
        assembly ("memory-safe") {
            // Of 32 bytes, the highest bit of each that is this one.
            function marks(place, wanted) -> found {
                found := xor(calldataload(place), mul(ONES, wanted))
                found := not(or(or(add(and(found, LOW), LOW), found), LOW))
            }
            end := add(offset, SHORTEST)
            for {} iszero(gt(end, last)) { end := add(end, 1) } {
                let place := add(roster.offset, end)
                // `}`, and behind the next byte `{"` or `,"`: within a string a mark has a backslash.
                let found := and(marks(place, 0x7d), marks(add(place, 3), 0x22))
                if found { found := and(found, or(marks(add(place, 2), 0x7b), marks(add(place, 2), 0x2c))) }
                if iszero(found) {
                    end := add(end, 31)
                    continue
                }
                for { let bits := 128 } gt(bits, 4) { bits := shr(1, bits) } {
                    if iszero(shr(sub(256, bits), found)) {
                        found := shl(bits, found)
                        end := add(end, shr(3, bits))
                    }
                }
                found := shr(216, calldataload(add(roster.offset, end)))
                if or(eq(found, BETWEEN), eq(found, BEHIND)) { break }
            }
        }
        if (end > last) revert OtherText(offset);
    }

    /// @dev Are these the last digits of the member that ends there?
    function _isOf(bytes calldata roster, uint256 end, bytes32[2] memory digits) private pure returns (bool) {
        uint256 from = end - 1 - ADDRESS_DIGITS;
        return bytes32(roster[from:from + 32]) == digits[0] && bytes32(roster[from + 8:end - 1]) == digits[1];
    }

    /// @dev The first and the last 32 digits of an address.
    function _digits(address worker) private pure returns (bytes32[2] memory digits) {
        string memory text = Strings.toHexString(worker);
        assembly ("memory-safe") {
            // Behind the length and `0x`.
            mstore(digits, mload(add(text, 34)))
            mstore(add(digits, 32), mload(add(text, 42)))
        }
    }

    /// @dev Where the bracket stands that closes list number `count` from byte `offset` on; by 32 bytes, as `_end`.
    function _closing(bytes calldata roster, uint256 offset, uint256 count) private pure returns (uint256) {
        for (; offset < roster.length; offset += 32) {
            uint256 found;
            assembly ("memory-safe") {
                found := calldataload(add(roster.offset, offset))
            }
            unchecked {
                // The highest bit of each byte that is a bracket, then how many there are, in the highest byte.
                found ^= BRACKETS;
                found = ~((found & LOW) + LOW | found | LOW);
                found = (found >> 7) * ONES >> 248;
            }
            if (found >= count) break;
            count -= found;
        }
        for (; offset < roster.length; ++offset) {
            if (roster[offset] == "]" && --count == 0) return offset;
        }
        revert OtherText(offset);
    }

    /// @dev The number at a place of a list whose first number stands at byte `offset`.
    function _numberOf(bytes calldata text, uint256 offset, uint256 place) private pure returns (uint256 number) {
        (number, offset) = _decimal(text, offset);
        for (uint256 i = 0; i < place; ++i) {
            if (offset >= text.length || text[offset] != ",") revert OtherText(offset);
            (number, offset) = _decimal(text, offset + 1);
        }
    }

    /// @dev Behind what is expected at a byte: `length` bytes, at most 32.
    function _skip(bytes calldata text, uint256 offset, bytes32 expected, uint256 length)
        private
        pure
        returns (uint256 end)
    {
        end = offset + length;
        if (end > text.length || bytes32(text[offset:end]) != expected) revert OtherText(offset);
    }

    function _decimal(bytes calldata text, uint256 offset) private pure returns (uint256 number, uint256 end) {
        for (end = offset; end < text.length && text[end] >= "0" && text[end] <= "9"; ++end) {
            number = number * 10 + uint8(text[end]) - 0x30;
        }
        if (end == offset || end - offset > MOST_DIGITS) revert OtherText(offset);
    }
}
