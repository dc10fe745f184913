"""Rules of sums, products and extremes, and of what is made of them."""
