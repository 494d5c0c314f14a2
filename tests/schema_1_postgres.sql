-- A store as version 1 of the schema made it: the tables, then what was in them.
CREATE SCHEMA priorwise;
SET search_path TO priorwise;
CREATE TABLE about (version BIGINT NOT NULL);
INSERT INTO about VALUES (1);
CREATE TABLE task (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
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
    unit TEXT COLLATE "C",
    request TEXT COLLATE "C",
    counts TEXT,
    settled BIGINT,
    PRIMARY KEY (task, step)
);
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
    request TEXT COLLATE "C",
    state BYTEA,
    PRIMARY KEY (task, number)
);
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
CREATE TABLE value (name TEXT COLLATE "C" PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO task (name, key, version, arms, state, opened, steps, events, closed) VALUES ('clicks', -2574680523546380226, 1, '["red", "blue''s"]', '\x00000000000000000000000000000040000000000000f03f0000000000000840', 1001.0, 5, 5, NULL);
INSERT INTO task (name, key, version, arms, state, opened, steps, events, closed) VALUES ('batch', 2226217309691620858, 1, '["red", "blue''s"]', '\x0000000000000040000000000000000000000000000008400000000000000000', 1005.0, 6, 1, 1005.0);
INSERT INTO decision (task, step, arm, width, seen, time, settings, pulls, mask, propensity, error, context, unit, request, counts, settled) VALUES (1, 1, 0, 2, 0, 1001.0, 1, 1, NULL, 0.3328173374613004, 1e-09, NULL, 'u0', 'r0', NULL, 1);
INSERT INTO decision (task, step, arm, width, seen, time, settings, pulls, mask, propensity, error, context, unit, request, counts, settled) VALUES (1, 2, 1, 2, 1, 1002.0, 1, 1, NULL, 0.7089783281733747, 1e-09, NULL, 'u1', 'r1', NULL, 2);
INSERT INTO decision (task, step, arm, width, seen, time, settings, pulls, mask, propensity, error, context, unit, request, counts, settled) VALUES (1, 3, 1, 2, 2, 1003.0, 1, 1, NULL, 0.8151260504201681, 1e-09, NULL, 'u2', 'r2', NULL, 3);
INSERT INTO decision (task, step, arm, width, seen, time, settings, pulls, mask, propensity, error, context, unit, request, counts, settled) VALUES (1, 4, 1, 2, 3, 1004.0, 1, 1, NULL, 0.7819548872180452, 1e-09, NULL, 'u3', 'r3', NULL, NULL);
INSERT INTO decision (task, step, arm, width, seen, time, settings, pulls, mask, propensity, error, context, unit, request, counts, settled) VALUES (1, 5, 1, 2, 3, 1005.0, 1, 1, NULL, 0.7819548872180452, 1e-09, NULL, 'u4', 'r4', NULL, 5);
INSERT INTO decision (task, step, arm, width, seen, time, settings, pulls, mask, propensity, error, context, unit, request, counts, settled) VALUES (2, 1, -1, 2, 0, 1005.0, 1, 6, NULL, NULL, NULL, NULL, NULL, NULL, '[1, 5]', NULL);
INSERT INTO event (task, number, kind, step, arm, pulls, value, squares, time, request, state) VALUES (1, 1, 'reward', 1, 0, 1.0, 0.0, NULL, 1001.0, NULL, NULL);
INSERT INTO event (task, number, kind, step, arm, pulls, value, squares, time, request, state) VALUES (1, 2, 'reward', 2, 1, 1.0, 1.0, NULL, 1002.0, NULL, NULL);
INSERT INTO event (task, number, kind, step, arm, pulls, value, squares, time, request, state) VALUES (1, 3, 'reward', 3, 1, 1.0, 0.0, NULL, 1003.0, NULL, NULL);
INSERT INTO event (task, number, kind, step, arm, pulls, value, squares, time, request, state) VALUES (1, 4, 'reward', 5, 1, 1.0, 0.0, NULL, 1005.0, NULL, NULL);
INSERT INTO event (task, number, kind, step, arm, pulls, value, squares, time, request, state) VALUES (1, 5, 'correction', 5, 1, 1.0, 1.0, NULL, 1005.0, NULL, NULL);
INSERT INTO event (task, number, kind, step, arm, pulls, value, squares, time, request, state) VALUES (2, 1, 'record', NULL, 0, 3.0, 2.0, NULL, 1005.0, 'q', NULL);
INSERT INTO prior (number, prior, status, made, accepted, story) VALUES (1, '{
  "priorwise": 1,
  "family": "beta",
  "alpha": [
    2.0,
    3.0
  ],
  "beta": [
    8.0,
    8.0
  ],
  "names": [
    "red",
    "blue''s"
  ]
}', 'accepted', 1000.0, 1000.0, '{}');
INSERT INTO settings (number, text) VALUES (1, '{"control": null, "floor": 0.0, "horizon": 50, "missing": "leave out", "policy": "ThompsonSampling()", "propensities": true, "seed": 0, "window": null}');
INSERT INTO value (name, value) VALUES ('x', '1');
