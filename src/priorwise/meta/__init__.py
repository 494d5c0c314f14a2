"""Learning the prior: exploration, statistics that merge, estimators with their uncertainty, and learners that use them."""
