// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title SignedText
/// @notice What canonical JSON documents say whose digest somebody has signed (docs/spec/rounds.md, "On a chain").
/// @dev The caller says where something stands. Quotation marks within a string are escaped in JSON, so a text that
/// begins with one, as all does that is looked for here, stands in no name that a stranger has chosen.
library SignedText {
    /// @notice The text doesn't have what is expected at this byte.
    error OtherText(uint256 at);

    uint256 private constant ADDRESS_DIGITS = 40;
    uint256 private constant MOST_DIGITS = 20;

    /// @notice The seat of a worker in a roster: at byte `at` stands `"seat":S,"weight":W,"worker":"0x..`.
    function seatOf(bytes calldata roster, uint256 at, address worker) internal pure returns (uint256 seat) {
        address found = address(0);
        // Only where it ends doesn't matter.
        // slither-disable-next-line unused-return
        (seat, found,) = _seat(roster, at);
        if (found != worker) revert OtherText(at);
    }

    /// @notice The worker at a place of a roster; `"members":[` stands at byte `at`.
    function memberOf(bytes calldata roster, uint256 at, uint256 place) internal pure returns (address worker) {
        at = _skip(roster, at, "\"members\":[");
        (worker, at) = _member(roster, at);
        for (uint256 i = 0; i < place; ++i) {
            (worker, at) = _member(roster, _skip(roster, at, ","));
        }
    }

    /// @notice The place of a worker in a roster; `"members":[` stands at byte `at`.
    function placeOf(bytes calldata roster, uint256 at, address worker) internal pure returns (uint256 place) {
        at = _skip(roster, at, "\"members\":[");
        address found = address(0);
        (found, at) = _member(roster, at);
        for (; found != worker; ++place) {
            (found, at) = _member(roster, _skip(roster, at, ","));
        }
    }

    /// @notice The partner of the member at a place; `"partners":[` stands at byte `at`.
    function partnerOf(bytes calldata roster, uint256 at, uint256 place) internal pure returns (uint256) {
        return _numberOf(roster, _skip(roster, at, "\"partners\":["), place);
    }

    /// @notice The place that a roster gives for a part; `"routes":[[` stands at byte `at`.
    function routeOf(bytes calldata roster, uint256 at, uint256 part, uint256 place) internal pure returns (uint256) {
        at = _skip(roster, at, "\"routes\":[[");
        for (uint256 i = 0; i < part; ++i) {
            while (at < roster.length && roster[at] != "]") ++at;
            at = _skip(roster, at, "],[");
        }
        return _numberOf(roster, at, place);
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
    function _member(bytes calldata roster, uint256 at) private pure returns (address worker, uint256 end) {
        // Numbers that nobody asks for.
        // slither-disable-next-line unused-return
        (, end) = _decimal(roster, _skip(roster, at, "{\"joined\":"));
        end = _skip(roster, end, ",\"role\":\"");
        while (end < roster.length && roster[end] != "\"") end += roster[end] == "\\" ? 2 : 1;
        // slither-disable-next-line unused-return
        (, worker, end) = _seat(roster, _skip(roster, end, "\","));
        end = _skip(roster, end, "\"}");
    }

    function _seat(bytes calldata roster, uint256 at) private pure returns (uint256 seat, address worker, uint256 end) {
        (seat, end) = _decimal(roster, _skip(roster, at, "\"seat\":"));
        // slither-disable-next-line unused-return
        (, end) = _decimal(roster, _skip(roster, end, ",\"weight\":"));
        at = _skip(roster, end, ",\"worker\":\"0x");
        end = at + ADDRESS_DIGITS;
        if (end > roster.length) revert OtherText(at);
        worker = address(uint160(hexadecimal(roster[at:end])));
    }

    /// @dev The number at a place of a list whose first number stands at byte `at`.
    function _numberOf(bytes calldata text, uint256 at, uint256 place) private pure returns (uint256 number) {
        (number, at) = _decimal(text, at);
        for (uint256 i = 0; i < place; ++i) {
            (number, at) = _decimal(text, _skip(text, at, ","));
        }
    }

    function _skip(bytes calldata text, uint256 at, string memory expected) private pure returns (uint256 end) {
        end = at + bytes(expected).length;
        if (end > text.length || keccak256(text[at:end]) != keccak256(bytes(expected))) revert OtherText(at);
    }

    function _decimal(bytes calldata text, uint256 at) private pure returns (uint256 number, uint256 end) {
        for (end = at; end < text.length && text[end] >= "0" && text[end] <= "9"; ++end) {
            number = number * 10 + uint8(text[end]) - 0x30;
        }
        if (end == at || end - at > MOST_DIGITS) revert OtherText(at);
    }
}
