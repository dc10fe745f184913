"""``pol demo``: the whole protocol as one scenario, with parties that cheat."""
