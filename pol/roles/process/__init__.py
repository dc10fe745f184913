"""A party as a process: its loop, what it owes, how long work takes."""
