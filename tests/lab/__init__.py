"""The laboratory: benchmarks, attacks and instruments. Nothing here is installed."""
