"""A real service is sent what no one should have sent: right statuses, no traces, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_requests import prepared, sent
from serving import prior

import priorwise as pw
from priorwise.serve import Decider
from priorwise.testing import base_seed


@pytest.mark.slow
def test_hostile_requests(tmp_path: Path) -> None:
    service, made = prepared(tmp_path)
    done = list(sent(service))
    wrong = [f"{case.label}: {'; '.join(what)}" for case, what, _ in done if what]
    assert not wrong, "\n".join(wrong)
    assert len(done) >= 200
    # alive, and it has kept what it took before
    assert service.ask("GET", "/ready", key=None).json == {"status": "ready"}
    answer = service.ask("POST", "/v1/reward", {"token": made["token"], "value": 1})
    assert answer.json == {"outcome": "repeated"}
    assert service.stop() == 0
    lines = service.lines()
    assert not [line for line in lines if line["level"] == "error"]
    text = service.log.read_text()
    assert not any(key in text for key in service.keys.values())
    assert len(text.splitlines()) == len(lines) + 1  # but for the address, all of it is JSON
    with Decider(
        prior(), pw.ThompsonSampling(), horizon=200, seed=base_seed(),
        store=tmp_path / "decisions.db", propensities=False,
    ) as decider:  # fmt: skip
        (victim,) = [each for each in decider.store.tasks(most=500) if each.name == "victim"]
        assert (victim.steps, victim.events, victim.closed) == (1, 1, None)
        assert [each.status for each in decider.versions()] == ["accepted"]
        names = decider.store.names()
        assert all(decider.replay(name) == [] for name in names)
        assert decider.store.size().rewards == 1
