"""A party as a process: its loop, its obligations, and the time that work takes."""
