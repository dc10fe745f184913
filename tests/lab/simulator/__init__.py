"""Games of real parties on the real contracts in memory: chance, time and trouble of a game follow from its seed."""
