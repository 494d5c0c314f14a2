"""A page to watch live decisions: tasks, arms, rewards, the prior, and whether all is well."""
