-- +goose Up

-- Runners and the rules that choose one, as the last good document of each says.
CREATE TABLE runners (
    name TEXT PRIMARY KEY,
    repo TEXT NOT NULL, -- that the name belongs to
    doc  BLOB NOT NULL
);
CREATE TABLE runner_rules (
    name        TEXT PRIMARY KEY,
    repo        TEXT NOT NULL,
    runner      TEXT NOT NULL,
    project     TEXT NOT NULL, -- '' is any
    environment TEXT NOT NULL, -- '' is any
    doc         BLOB NOT NULL
);

-- Which runner an environment is pinned to since its first run. Those that have run before
-- there were runners are the local one's: rebuild.go, as only records tell which these are.
CREATE TABLE environments (
    project   TEXT NOT NULL,
    name      TEXT NOT NULL,
    runner    TEXT NOT NULL,
    rule      TEXT NOT NULL, -- '' if none matched
    pinned_at INTEGER NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE INDEX environments_by_runner ON environments (runner, project, name);
INSERT OR IGNORE INTO rebuilds (name) VALUES ('environments');
