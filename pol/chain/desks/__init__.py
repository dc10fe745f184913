"""The market's contracts: one binding a desk."""
