"""How far apart two priors are, and what it costs to hold the wrong one."""
