"""Meta-learners: which prior and policy to hold in the next tasks, and the simulation that they run
in.
"""
