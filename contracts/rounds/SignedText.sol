// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title SignedText
/// @notice Numbers in canonical JSON documents whose digest somebody has signed (docs/spec/rounds.md, "On a chain").
/// @dev The caller says where something stands. Quotation marks within a string are escaped in JSON, so a text that
/// begins with one, as all that is expected here, stands in no name that a stranger has chosen.
library SignedText {
    /// @notice The text doesn't have what is expected at this byte.
    error OtherText(uint256 at);

    uint256 private constant ADDRESS_DIGITS = 40;
    uint256 private constant MOST_DIGITS = 10;

    /// @notice The seat of a worker in a roster: at byte `at` stands `"seat":S,"weight":W,"worker":"0x.."`.
    function seatOf(bytes calldata roster, uint256 at, address worker) internal pure returns (uint256 seat) {
        at = _skip(roster, at, "\"seat\":");
        (seat, at) = _decimal(roster, at);
        at = _skip(roster, at, ",\"weight\":");
        // Only where it ends matters.
        // slither-disable-next-line unused-return
        (, at) = _decimal(roster, at);
        at = _skip(roster, at, ",\"worker\":\"0x");
        if (roster.length < at + ADDRESS_DIGITS) revert OtherText(at);
        if (hexadecimal(roster[at:at + ADDRESS_DIGITS]) != uint160(worker)) revert OtherText(at);
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

    function _skip(bytes calldata text, uint256 at, string memory expected) private pure returns (uint256 end) {
        end = at + bytes(expected).length;
        if (end > text.length || keccak256(text[at:end]) != keccak256(bytes(expected))) revert OtherText(at);
    }

    function _decimal(bytes calldata text, uint256 at) private pure returns (uint256 number, uint256 end) {
        for (end = at; end < text.length && text[end] >= 0x30 && text[end] <= 0x39; ++end) {
            number = number * 10 + uint8(text[end]) - 0x30;
        }
        if (end == at || end - at > MOST_DIGITS) revert OtherText(at);
    }
}
