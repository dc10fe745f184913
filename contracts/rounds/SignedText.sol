// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title SignedText
/// @notice What canonical JSON documents say whose digest somebody has signed (docs/spec/rounds.md, "On a chain").
/// @dev The caller says where something stands. Quotation marks within a string are escaped in JSON, so a text that
/// begins with one, as all does that is looked for here, stands in no name that a stranger has chosen.
library SignedText {
    /// @notice The text doesn't have what is expected at this byte.
    error OtherText(uint256 offset);

    uint256 private constant ADDRESS_DIGITS = 40;
    uint256 private constant MOST_DIGITS = 20;

    /// @notice The seat of a worker in a roster: at byte `offset` stands `"seat":S,"weight":W,"worker":"0x..`.
    function seatOf(bytes calldata roster, uint256 offset, address worker) internal pure returns (uint256 seat) {
        address found = address(0);
        // Only where it ends doesn't matter.
        // slither-disable-next-line unused-return
        (seat, found,) = _seat(roster, offset);
        if (found != worker) revert OtherText(offset);
    }

    /// @notice The worker at a place of a roster; `"members":[` stands at byte `offset`.
    function memberOf(bytes calldata roster, uint256 offset, uint256 place) internal pure returns (address worker) {
        offset = _skip(roster, offset, "\"members\":[");
        (worker, offset) = _member(roster, offset);
        for (uint256 i = 0; i < place; ++i) {
            (worker, offset) = _member(roster, _skip(roster, offset, ","));
        }
    }

    /// @notice The place of a worker in a roster; `"members":[` stands at byte `offset`.
    function placeOf(bytes calldata roster, uint256 offset, address worker) internal pure returns (uint256 place) {
        offset = _skip(roster, offset, "\"members\":[");
        address found = address(0);
        (found, offset) = _member(roster, offset);
        for (; found != worker; ++place) {
            (found, offset) = _member(roster, _skip(roster, offset, ","));
        }
    }

    /// @notice The partner of the member at a place; `"partners":[` stands at byte `offset`.
    function partnerOf(bytes calldata roster, uint256 offset, uint256 place) internal pure returns (uint256) {
        return _numberOf(roster, _skip(roster, offset, "\"partners\":["), place);
    }

    /// @notice The place that a roster gives for a part; `"routes":[[` stands at byte `offset`.
    function routeOf(bytes calldata roster, uint256 offset, uint256 part, uint256 place)
        internal
        pure
        returns (uint256)
    {
        offset = _skip(roster, offset, "\"routes\":[[");
        for (uint256 i = 0; i < part; ++i) {
            while (offset < roster.length && roster[offset] != "]") ++offset;
            offset = _skip(roster, offset, "],[");
        }
        return _numberOf(roster, offset, place);
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

    /// @dev `{"joined":J,"role":"..","seat":S,"weight":W,"worker":"0x.."}`
    function _member(bytes calldata roster, uint256 offset) private pure returns (address worker, uint256 end) {
        // Numbers that nobody asks for.
        // slither-disable-next-line unused-return
        (, end) = _decimal(roster, _skip(roster, offset, "{\"joined\":"));
        end = _skip(roster, end, ",\"role\":\"");
        while (end < roster.length && roster[end] != "\"") end += roster[end] == "\\" ? 2 : 1;
        // slither-disable-next-line unused-return
        (, worker, end) = _seat(roster, _skip(roster, end, "\","));
        end = _skip(roster, end, "\"}");
    }

    function _seat(bytes calldata roster, uint256 offset)
        private
        pure
        returns (uint256 seat, address worker, uint256 end)
    {
        (seat, end) = _decimal(roster, _skip(roster, offset, "\"seat\":"));
        // slither-disable-next-line unused-return
        (, end) = _decimal(roster, _skip(roster, end, ",\"weight\":"));
        offset = _skip(roster, end, ",\"worker\":\"0x");
        end = offset + ADDRESS_DIGITS;
        if (end > roster.length) revert OtherText(offset);
        worker = address(uint160(hexadecimal(roster[offset:end])));
    }

    /// @dev The number at a place of a list whose first number stands at byte `offset`.
    function _numberOf(bytes calldata text, uint256 offset, uint256 place) private pure returns (uint256 number) {
        (number, offset) = _decimal(text, offset);
        for (uint256 i = 0; i < place; ++i) {
            (number, offset) = _decimal(text, _skip(text, offset, ","));
        }
    }

    function _skip(bytes calldata text, uint256 offset, string memory expected) private pure returns (uint256 end) {
        end = offset + bytes(expected).length;
        if (end > text.length || keccak256(text[offset:end]) != keccak256(bytes(expected))) revert OtherText(offset);
    }

    function _decimal(bytes calldata text, uint256 offset) private pure returns (uint256 number, uint256 end) {
        for (end = offset; end < text.length && text[end] >= "0" && text[end] <= "9"; ++end) {
            number = number * 10 + uint8(text[end]) - 0x30;
        }
        if (end == offset || end - offset > MOST_DIGITS) revert OtherText(offset);
    }
}
