// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {SignedText} from "./SignedText.sol";
import {Delivery, LogHead, Roster, RoundClaim, SignedClaim, SignedHead} from "./RoundTypes.sol";

/// @title RoundSignatures
/// @notice Digests of what is signed in rounds, and who has signed them (docs/spec/rounds.md, "Keys").
/// @dev The domain names neither chain nor contract: all that is signed names its plan's registration, whose id covers
/// them.
/// Signatures have a low `s`, and `v` is 27 or 28; any other reverts with an error of `ECDSA`.
library RoundSignatures {
    /// @notice Somebody else has signed the claim.
    error NotTheAuthor(address signer);

    /// @dev Of a signature.
    uint256 private constant DIGITS = 130;
    bytes32 private constant DOMAIN = keccak256(
        abi.encode(keccak256("EIP712Domain(string name,string version)"), keccak256("pol rounds"), keccak256("1"))
    );
    bytes32 private constant CLAIM = keccak256(
        abi.encodePacked(
            "RoundClaim(bytes32 plan,address worker,uint64 round,uint32 phase,uint32 part,bytes32 roster,",
            "bytes32 program,bytes32 constants,uint64 firstStep,uint64 steps,bytes32 start,bytes32 end,bytes32 sources)"
        )
    );
    bytes32 private constant DELIVERY = keccak256("Delivery(bytes32 plan,uint64 round,bytes32 claim)");
    bytes32 private constant ROSTER = keccak256("Roster(bytes32 plan,uint64 round,bytes32 document)");
    bytes32 private constant LOG_HEAD = keccak256("LogHead(bytes32 plan,uint64 size,bytes32 root)");

    /// @notice The digest of a claim, by which sources and deliveries name it.
    function digest(RoundClaim calldata claim) internal pure returns (bytes32) {
        return _typed(keccak256(abi.encode(CLAIM, claim)));
    }

    /// @notice The digest of a receipt.
    function digest(Delivery calldata delivery) internal pure returns (bytes32) {
        return _typed(keccak256(abi.encode(DELIVERY, delivery)));
    }

    /// @notice The digest of a roster as its coordinator signs it.
    function digest(Roster memory roster) internal pure returns (bytes32) {
        return _typed(keccak256(abi.encode(ROSTER, roster)));
    }

    /// @notice The digest of a head of the log.
    function digest(LogHead calldata head) internal pure returns (bytes32) {
        return _typed(keccak256(abi.encode(LOG_HEAD, head)));
    }

    /// @notice The worker whose claim this is; reverts unless it has signed it.
    function author(SignedClaim calldata signed) internal pure returns (address worker) {
        worker = ECDSA.recoverCalldata(digest(signed.claim), signed.signature);
        if (worker != signed.claim.worker) revert NotTheAuthor(worker);
    }

    /// @notice The keeper that has signed a head.
    function keeper(SignedHead calldata signed) internal pure returns (address) {
        return ECDSA.recoverCalldata(digest(signed.head), signed.signature);
    }

    /// @notice Who has signed a digest.
    function signer(bytes32 digest_, bytes calldata signature) internal pure returns (address) {
        return ECDSA.recoverCalldata(digest_, signature);
    }

    /// @notice Who has signed a digest, by a signature of 130 hexadecimal digits in a text.
    function signerInText(bytes32 digest_, bytes calldata text, uint256 offset) internal pure returns (address) {
        if (text.length < DIGITS || offset > text.length - DIGITS) revert SignedText.OtherText(offset);
        uint256 v = SignedText.hexadecimal(text[offset + 128:offset + DIGITS]);
        bytes32 r = bytes32(SignedText.hexadecimal(text[offset:offset + 64]));
        return ECDSA.recover(digest_, uint8(v), r, bytes32(SignedText.hexadecimal(text[offset + 64:offset + 128])));
    }

    function _typed(bytes32 content) private pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", DOMAIN, content));
    }
}
