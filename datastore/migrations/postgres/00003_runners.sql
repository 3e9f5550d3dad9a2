-- +goose Up

CREATE TABLE runners (
    name TEXT COLLATE "C" PRIMARY KEY,
    repo TEXT COLLATE "C" NOT NULL,
    doc  BYTEA NOT NULL
);
ALTER TABLE runners ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE TABLE runner_rules (
    name        TEXT COLLATE "C" PRIMARY KEY,
    repo        TEXT COLLATE "C" NOT NULL,
    runner      TEXT COLLATE "C" NOT NULL,
    project     TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    doc         BYTEA NOT NULL
);
ALTER TABLE runner_rules ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE TABLE environments (
    project   TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    runner    TEXT COLLATE "C" NOT NULL,
    rule      TEXT COLLATE "C" NOT NULL,
    pinned_at BIGINT NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE INDEX environments_by_runner ON environments (runner, project, name);
-- A database without runs has nothing to write again, and stays one that records can be copied to.
INSERT INTO rebuilds (name) SELECT 'environments' WHERE EXISTS (SELECT 1 FROM runs) ON CONFLICT (name) DO NOTHING;
