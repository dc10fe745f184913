"""The learning record: its document, signed heads, attestation, and reading it back."""
