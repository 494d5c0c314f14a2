"""Arms with features, normal weights and normal rewards."""
