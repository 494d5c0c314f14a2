"""Experiments: for now the paper's three problems."""
