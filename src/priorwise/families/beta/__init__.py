"""Independent arms with Beta means and rewards of 0 or 1."""
