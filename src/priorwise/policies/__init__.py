"""alg(theta): one algorithm a file. Those with ``monte_carlo_n`` see the posterior through draws; baselines read it exactly."""
