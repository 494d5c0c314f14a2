-- A store as version 2 of the schema made it: of its accepted priors the second is in use.
CREATE SCHEMA priorwise;
CREATE TABLE priorwise.about (
    version bigint NOT NULL
);
CREATE TABLE priorwise.api_key (
    name text NOT NULL COLLATE pg_catalog."C",
    digest text NOT NULL,
    scopes text NOT NULL,
    made double precision NOT NULL,
    ended double precision,
    rate double precision
);
CREATE TABLE priorwise.decision (
    task bigint NOT NULL,
    step bigint NOT NULL,
    arm bigint NOT NULL,
    width bigint NOT NULL,
    seen bigint NOT NULL,
    "time" double precision NOT NULL,
    settings bigint NOT NULL,
    pulls bigint NOT NULL,
    mask text,
    propensity double precision,
    error double precision,
    context text,
    unit text COLLATE pg_catalog."C",
    request text COLLATE pg_catalog."C",
    counts text,
    settled bigint
);
CREATE TABLE priorwise.event (
    task bigint NOT NULL,
    number bigint NOT NULL,
    kind text NOT NULL,
    step bigint,
    arm bigint NOT NULL,
    pulls double precision NOT NULL,
    value double precision,
    squares double precision,
    "time" double precision NOT NULL,
    request text COLLATE pg_catalog."C",
    state bytea
);
CREATE TABLE priorwise.prior (
    number bigint NOT NULL,
    prior text NOT NULL,
    status text NOT NULL,
    made double precision NOT NULL,
    accepted double precision,
    story text NOT NULL
);
CREATE TABLE priorwise.settings (
    number bigint NOT NULL,
    text text NOT NULL
);
CREATE TABLE priorwise.task (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    key bigint NOT NULL,
    version bigint NOT NULL,
    arms text NOT NULL,
    state bytea NOT NULL,
    opened double precision NOT NULL,
    steps bigint NOT NULL,
    events bigint NOT NULL,
    closed double precision,
    decisions bigint DEFAULT 0 NOT NULL,
    rewards bigint DEFAULT 0 NOT NULL
);
ALTER TABLE priorwise.task ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME priorwise.task_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE priorwise.value (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL
);
INSERT INTO priorwise.about VALUES (2);
INSERT INTO priorwise.decision VALUES (1, 1, 0, 2, 0, 1000, 1, 1, NULL, 0.3328173439528612, 0, NULL, NULL, NULL, NULL, 1);
INSERT INTO priorwise.decision VALUES (2, 1, 1, 2, 0, 500, 1, 1, NULL, 0.5, 6.661338147750939e-16, NULL, NULL, NULL, NULL, NULL);
INSERT INTO priorwise.event VALUES (1, 1, 'reward', 1, 0, 1, 1, NULL, 1000, NULL, NULL);
INSERT INTO priorwise.prior VALUES (1, '{
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
}', 'accepted', 1000, 1000, '{}');
INSERT INTO priorwise.prior VALUES (4, '{
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
}', 'proposed', 1000, NULL, '{}');
INSERT INTO priorwise.prior VALUES (3, '{
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
}', 'accepted', 1000, 1010, '{}');
INSERT INTO priorwise.prior VALUES (2, '{
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
}', 'accepted', 1000, 1010.0000000000001, '{}');
INSERT INTO priorwise.prior VALUES (5, '{
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
}', 'declined', 1000, NULL, '{}');
INSERT INTO priorwise.settings VALUES (1, '{"control": null, "floor": 0.0, "horizon": 50, "missing": "leave out", "policy": "ThompsonSampling()", "propensities": true, "seed": 0, "window": null}');
INSERT INTO priorwise.task OVERRIDING SYSTEM VALUE VALUES (1, 'old', -6089401062945945387, 1, '["red", "blue"]', '\x000000000000f03f0000000000000000000000000000f03f0000000000000000', 1000, 1, 1, NULL, 1, 1);
INSERT INTO priorwise.task OVERRIDING SYSTEM VALUE VALUES (2, 'new', -2077511428340045741, 2, '["red", "blue"]', '\x0000000000000000000000000000000000000000000000000000000000000000', 500, 1, 0, NULL, 1, 0);
SELECT pg_catalog.setval('priorwise.task_id_seq', 2, true);
ALTER TABLE ONLY priorwise.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (name);
ALTER TABLE ONLY priorwise.decision
    ADD CONSTRAINT decision_pkey PRIMARY KEY (task, step);
ALTER TABLE ONLY priorwise.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (task, number);
ALTER TABLE ONLY priorwise.prior
    ADD CONSTRAINT prior_pkey PRIMARY KEY (number);
ALTER TABLE ONLY priorwise.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (number);
ALTER TABLE ONLY priorwise.task
    ADD CONSTRAINT task_name_key UNIQUE (name);
ALTER TABLE ONLY priorwise.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (id);
ALTER TABLE ONLY priorwise.value
    ADD CONSTRAINT value_pkey PRIMARY KEY (name);
CREATE INDEX decision_outstanding ON priorwise.decision USING btree ("time") WHERE ((settled IS NULL) AND (counts IS NULL));
CREATE UNIQUE INDEX decision_request ON priorwise.decision USING btree (task, request) WHERE (request IS NOT NULL);
CREATE UNIQUE INDEX decision_unit ON priorwise.decision USING btree (unit, task) WHERE (unit IS NOT NULL);
CREATE UNIQUE INDEX event_request ON priorwise.event USING btree (task, request) WHERE (request IS NOT NULL);
ALTER TABLE ONLY priorwise.decision
    ADD CONSTRAINT decision_task_fkey FOREIGN KEY (task) REFERENCES priorwise.task(id);
ALTER TABLE ONLY priorwise.event
    ADD CONSTRAINT event_task_fkey FOREIGN KEY (task) REFERENCES priorwise.task(id);
