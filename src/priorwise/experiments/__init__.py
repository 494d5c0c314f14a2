"""The paper's experiments, our own, and the theory, measured: what they are made of and how they
run.
"""
