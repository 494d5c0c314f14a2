-- A store as version 2 of the schema made it: of its accepted priors the second is in use.
PRAGMA application_id = 1886549875;
PRAGMA user_version = 2;
CREATE TABLE api_key (
        name TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        scopes TEXT NOT NULL,
        made DOUBLE PRECISION NOT NULL,
        ended DOUBLE PRECISION,
        rate DOUBLE PRECISION
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
        unit TEXT,
        request TEXT,
        counts TEXT,
        settled BIGINT,
        PRIMARY KEY (task, step)
    ) WITHOUT ROWID;
INSERT INTO "decision" VALUES(1,1,0,2,0,1000.0,1,1,NULL,3.32817343952861222078e-01,0.0,NULL,NULL,NULL,NULL,1);
INSERT INTO "decision" VALUES(2,1,1,2,0,500.0,1,1,NULL,0.5,6.66133814775093924254e-16,NULL,NULL,NULL,NULL,NULL);
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
        request TEXT,
        state BYTEA,
        PRIMARY KEY (task, number)
    ) WITHOUT ROWID;
INSERT INTO "event" VALUES(1,1,'reward',1,0,1.0,1.0,NULL,1000.0,NULL,NULL);
CREATE TABLE prior (
        number BIGINT PRIMARY KEY,
        prior TEXT NOT NULL,
        status TEXT NOT NULL,
        made DOUBLE PRECISION NOT NULL,
        accepted DOUBLE PRECISION,
        story TEXT NOT NULL
    );
INSERT INTO "prior" VALUES(1,'{
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
    "blue"
  ]
}','accepted',1000.0,1000.0,'{}');
INSERT INTO "prior" VALUES(2,'{
  "priorwise": 1,
  "family": "beta",
  "alpha": [
    3.0,
    3.0
  ],
  "beta": [
    8.0,
    8.0
  ],
  "names": [
    "red",
    "blue"
  ]
}','accepted',1000.0,1.01000000000000011372e+03,'{}');
INSERT INTO "prior" VALUES(3,'{
  "priorwise": 1,
  "family": "beta",
  "alpha": [
    4.0,
    3.0
  ],
  "beta": [
    8.0,
    8.0
  ],
  "names": [
    "red",
    "blue"
  ]
}','accepted',1000.0,1010.0,'{}');
INSERT INTO "prior" VALUES(4,'{
  "priorwise": 1,
  "family": "beta",
  "alpha": [
    5.0,
    3.0
  ],
  "beta": [
    8.0,
    8.0
  ],
  "names": [
    "red",
    "blue"
  ]
}','proposed',1000.0,NULL,'{}');
INSERT INTO "prior" VALUES(5,'{
  "priorwise": 1,
  "family": "beta",
  "alpha": [
    6.0,
    3.0
  ],
  "beta": [
    8.0,
    8.0
  ],
  "names": [
    "red",
    "blue"
  ]
}','declined',1000.0,NULL,'{}');
CREATE TABLE settings (number BIGINT PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO "settings" VALUES(1,'{"control": null, "floor": 0.0, "horizon": 50, "missing": "leave out", "policy": "ThompsonSampling()", "propensities": true, "seed": 0, "window": null}');
CREATE TABLE task (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        key BIGINT NOT NULL,
        version BIGINT NOT NULL,
        arms TEXT NOT NULL,
        state BYTEA NOT NULL,
        opened DOUBLE PRECISION NOT NULL,
        steps BIGINT NOT NULL,
        events BIGINT NOT NULL,
        closed DOUBLE PRECISION
    , decisions BIGINT NOT NULL DEFAULT 0, rewards BIGINT NOT NULL DEFAULT 0);
INSERT INTO "task" VALUES(1,'old',-6089401062945945387,1,'["red", "blue"]',X'000000000000F03F0000000000000000000000000000F03F0000000000000000',1000.0,1,1,NULL,1,1);
INSERT INTO "task" VALUES(2,'new',-2077511428340045741,2,'["red", "blue"]',X'0000000000000000000000000000000000000000000000000000000000000000',500.0,1,0,NULL,1,0);
CREATE TABLE value (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE UNIQUE INDEX decision_request ON decision (task, request) WHERE request IS NOT NULL;
CREATE UNIQUE INDEX decision_unit ON decision (unit, task) WHERE unit IS NOT NULL;
CREATE INDEX decision_outstanding ON decision (time) WHERE settled IS NULL AND counts IS NULL;
CREATE UNIQUE INDEX event_request ON event (task, request) WHERE request IS NOT NULL;
