"""The paper's experiments, the theory measured, and our own; ``running`` runs them."""
