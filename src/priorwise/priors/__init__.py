"""P_theta and its belief, one conjugate family a file."""
