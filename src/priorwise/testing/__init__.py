"""Contract tests for anyone's prior, policy or store: subclass, override one fixture, run pytest
(which this folder needs).

A prior::

    class TestMyPrior(PriorContract):
        @pytest.fixture
        def prior(self):
            return MyPrior(...)

A policy::

    class TestMyPolicy(PolicyContract):
        @pytest.fixture
        def policy(self):
            return MyPolicy(...)

A store of live decisions::

    class TestMyStore(StoreContract):
        @pytest.fixture
        def opened(self, tmp_path):
            return lambda: MyStore(tmp_path)

Statistical checks state their false-alarm rate and carry a control that must fail. Seeds are fixed;
the environment variable ``PRIORWISE_TEST_SEED`` shifts all of them.
"""

try:
    import pytest
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    missing = "pytest, which is not installed; pip install pytest"
    needs = f"priorwise.testing holds test classes for {missing}"
    raise ModuleNotFoundError(needs, name="pytest") from None

_asserting = ("family", "policy", "prior", "real", "store", "twins")
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _asserting))

from priorwise.testing.calibration import calibration  # noqa: E402
from priorwise.testing.family import FamilyContract  # noqa: E402
from priorwise.testing.policy import (  # noqa: E402
    MemoryPolicyContract,
    PolicyContract,
    SamplingPolicyContract,
)
from priorwise.testing.prior import JsonContract, PriorContract  # noqa: E402
from priorwise.testing.real import RealPriorContract  # noqa: E402
from priorwise.testing.seeds import base_seed  # noqa: E402
from priorwise.testing.store import StoreContract  # noqa: E402

__all__ = [
    "FamilyContract",
    "JsonContract",
    "MemoryPolicyContract",
    "PolicyContract",
    "PriorContract",
    "RealPriorContract",
    "SamplingPolicyContract",
    "StoreContract",
    "base_seed",
    "calibration",
]
