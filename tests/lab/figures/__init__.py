"""The pictures of the documentation, drawn from what is committed."""
