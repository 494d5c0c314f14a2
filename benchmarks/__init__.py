"""Speed of priorwise beside other implementations; ``python -m benchmarks``."""

import os

# Before NumPy loads: a contender on one thread must not get a second one from its linear algebra.
for _library in ("OPENBLAS", "MKL", "OMP", "BLIS", "VECLIB"):
    os.environ[f"{_library}{'_MAXIMUM' if _library == 'VECLIB' else '_NUM'}_THREADS"] = "1"
