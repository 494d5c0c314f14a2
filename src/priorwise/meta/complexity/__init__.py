"""How many tasks an estimate takes: measured, and by the theory."""
