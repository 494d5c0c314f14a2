"""The compiled engine: one loop over tiles of tasks, and the tile functions of families and
policies.

A tile is :data:`~priorwise.kernels.compiling.LANES` tasks in lockstep. Every array of a tile is a
stack of rows of that many lanes, so the innermost loop of every function runs over tasks and
vectorises. Nothing here is compiled per pair of family and policy: the loop calls tile functions by
their addresses. Each function is the twin of a NumPy method elsewhere in the package and draws the
same numbers from the same streams.
"""
