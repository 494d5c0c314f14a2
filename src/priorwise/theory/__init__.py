"""What theorems speak of: distances, tails, diameters, laws of actions, histories."""
