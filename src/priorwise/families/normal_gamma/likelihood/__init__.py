"""Normal-gamma priors by maximum marginal likelihood."""
