"""Claims about segments: exact distances, draws, and what a verifier posts."""
