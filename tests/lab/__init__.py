"""The laboratory: benchmarks, attacks, instruments and simulations. Nothing here is installed."""
