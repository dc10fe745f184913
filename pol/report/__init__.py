"""Pages and pictures for people. What strangers wrote is text in them, whatever it looks like."""
