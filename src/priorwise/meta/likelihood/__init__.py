"""Maximum marginal likelihood, right however the pulls were chosen: one folder a family, and a table of them."""
