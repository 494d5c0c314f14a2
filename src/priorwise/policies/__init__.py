"""alg(theta): one policy per file. Some see the posterior through draws only; others read it."""
