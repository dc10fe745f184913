"""What pages are made of: style, elements, charts, maps."""
