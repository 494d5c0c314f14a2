"""Independent or correlated arms with normal means and normal rewards."""
