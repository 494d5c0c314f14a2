"""The sensitivity ladder: from the worst case down to what is measured."""
