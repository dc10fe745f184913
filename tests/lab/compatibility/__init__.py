"""Files of each release that later ones have to read (docs/spec/compatibility.md)."""
