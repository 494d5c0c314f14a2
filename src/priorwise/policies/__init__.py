"""alg(theta): policies by kind. Some see the posterior only through draws; baselines read it
exactly.
"""
