"""alg(theta): policies by kind. Those with ``monte_carlo_n`` see the posterior through draws; baselines read it exactly."""
