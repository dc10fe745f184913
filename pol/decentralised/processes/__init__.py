"""Workers as processes on this machine, and how they exchange what they sign."""
