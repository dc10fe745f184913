"""Quotes of trusted hardware as evidence beside a claim: what they say is a machine's word, no proof."""
