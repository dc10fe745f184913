"""Reference trainers of many workers, whose every claim can be proven, verified and disputed (docs/spec/rounds.md)."""
