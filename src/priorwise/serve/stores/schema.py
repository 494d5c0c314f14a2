"""The tables of stores that use SQL, as numbered steps: a store made by an earlier version of this
package is brought up to date when it is opened, all steps in one transaction.

A step that was ever released is never edited: add another one. Both databases read the same text
but for the words in braces.
"""

from __future__ import annotations

from typing import Final

STEPS: Final = (
    # 1
    """
    CREATE TABLE task (
        id {id},
        name {name} NOT NULL UNIQUE,
        key BIGINT NOT NULL,
        version BIGINT NOT NULL,
        arms TEXT NOT NULL,
        state BYTEA NOT NULL,
        opened DOUBLE PRECISION NOT NULL,
        steps BIGINT NOT NULL,
        events BIGINT NOT NULL,
        closed DOUBLE PRECISION
    );
    CREATE TABLE decision (
        task BIGINT NOT NULL REFERENCES task (id),
        step BIGINT NOT NULL,
        arm BIGINT NOT NULL,
        width BIGINT NOT NULL,
        seen BIGINT NOT NULL,
        time DOUBLE PRECISION NOT NULL,
        settings BIGINT NOT NULL,
        pulls BIGINT NOT NULL,
        mask TEXT,
        propensity DOUBLE PRECISION,
        error DOUBLE PRECISION,
        context TEXT,
        unit {name},
        request {name},
        counts TEXT,
        settled BIGINT,
        PRIMARY KEY (task, step)
    ) {clustered};
    CREATE UNIQUE INDEX decision_request ON decision (task, request) WHERE request IS NOT NULL;
    CREATE UNIQUE INDEX decision_unit ON decision (unit, task) WHERE unit IS NOT NULL;
    CREATE INDEX decision_outstanding ON decision (time) WHERE settled IS NULL AND counts IS NULL;
    CREATE TABLE event (
        task BIGINT NOT NULL REFERENCES task (id),
        number BIGINT NOT NULL,
        kind TEXT NOT NULL,
        step BIGINT,
        arm BIGINT NOT NULL,
        pulls DOUBLE PRECISION NOT NULL,
        value DOUBLE PRECISION,
        squares DOUBLE PRECISION,
        time DOUBLE PRECISION NOT NULL,
        request {name},
        state BYTEA,
        PRIMARY KEY (task, number)
    ) {clustered};
    CREATE UNIQUE INDEX event_request ON event (task, request) WHERE request IS NOT NULL;
    CREATE TABLE prior (
        number BIGINT PRIMARY KEY,
        prior TEXT NOT NULL,
        status TEXT NOT NULL,
        made DOUBLE PRECISION NOT NULL,
        accepted DOUBLE PRECISION,
        story TEXT NOT NULL
    );
    CREATE TABLE settings (number BIGINT PRIMARY KEY, text TEXT NOT NULL);
    CREATE TABLE value (name {name} PRIMARY KEY, value TEXT NOT NULL);
    """,
    # 2: keys of the service, and counts that need no look at every decision
    """
    CREATE TABLE api_key (
        name {name} PRIMARY KEY,
        digest TEXT NOT NULL,
        scopes TEXT NOT NULL,
        made DOUBLE PRECISION NOT NULL,
        ended DOUBLE PRECISION,
        rate DOUBLE PRECISION
    );
    ALTER TABLE task ADD COLUMN decisions BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE task ADD COLUMN rewards BIGINT NOT NULL DEFAULT 0;
    UPDATE task SET
        decisions = (SELECT count(*) FROM decision d WHERE d.task = task.id),
        rewards = (
            SELECT count(*) FROM event e WHERE e.task = task.id AND e.kind IN ('reward', 'record')
        );
    """,
    # 3: how many priors had been accepted with this one; earlier versions went by the time
    """
    ALTER TABLE prior ADD COLUMN acceptance BIGINT;
    UPDATE prior SET acceptance = (
        SELECT count(*) FROM prior p WHERE p.status = 'accepted'
        AND (coalesce(p.accepted, 0), p.number) <= (coalesce(prior.accepted, 0), prior.number)
    ) WHERE status = 'accepted';
    """,
)

NEWEST: Final = len(STEPS)
"""Number of the schema that this code reads and writes."""


def statements(after: int, **words: str) -> list[str]:
    """Return the statements that bring a schema of number ``after`` up to date."""
    texts = [step.format(**words) for step in STEPS[after:]]
    return [each.strip() for text in texts for each in text.split(";") if each.strip()]


def check(found: int, where: str) -> None:
    """Refuse a store that a later version of this package made."""
    if found > NEWEST:
        raise ValueError(
            f"{where} has the schema {found} of a later version of priorwise; this one reads up "
            f"to {NEWEST}: install the later one"
        )
