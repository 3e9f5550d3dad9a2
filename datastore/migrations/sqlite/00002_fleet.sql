-- +goose Up

-- What a run needs to be counted, ordered and kept by, without being decrypted.
ALTER TABLE runs ADD COLUMN provider TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN bundle TEXT NOT NULL DEFAULT '';
UPDATE runs SET priority = 2 WHERE kind = 'drift'; -- 0: writes; 1: plans; 2: drift checks
CREATE INDEX runs_unfinished ON runs (cluster) WHERE status IN ('queued', 'running', 'waiting', 'retrying');
CREATE INDEX runs_by_bundle ON runs (bundle);
-- Who has a state that is not in our own backend, which tells them apart by name.
CREATE INDEX runs_by_state ON runs (state_location, cluster) WHERE state_location NOT LIKE 'clusters/%';
-- Everything that a look for work asks for: it reads no row.
DROP INDEX runs_claimable;
CREATE INDEX runs_claimable ON runs (priority, created_at, id, claim_at, kind, provider, state_location) WHERE claim_at IS NOT NULL;

-- Which runs are kept for the sake of others: holder is a run ("run:" and its
-- id) or a cluster ("cluster:" and its name).
CREATE TABLE run_references (
    holder TEXT NOT NULL,
    run    TEXT NOT NULL,
    PRIMARY KEY (holder, run)
) WITHOUT ROWID;
CREATE INDEX run_references_by_run ON run_references (run);

-- What lists of clusters show (line) and select by, apart from the records, so
-- that they neither decrypt one nor step over it.
DROP INDEX clusters_by_owner;
DROP INDEX clusters_waiting;
ALTER TABLE clusters DROP COLUMN owner;
ALTER TABLE clusters DROP COLUMN project;
ALTER TABLE clusters DROP COLUMN environment;
ALTER TABLE clusters DROP COLUMN phase;
ALTER TABLE clusters DROP COLUMN waiting;
ALTER TABLE clusters DROP COLUMN labels;
ALTER TABLE clusters DROP COLUMN applied_run;
CREATE TABLE summaries (
    name           TEXT PRIMARY KEY,
    line           TEXT NOT NULL, -- all that a list shows: one value is read much faster than twenty
    owner          TEXT NOT NULL,
    revision       TEXT NOT NULL, -- from which what is desired comes
    project        TEXT NOT NULL,
    environment    TEXT NOT NULL,
    phase          TEXT NOT NULL,
    waiting        TEXT NOT NULL,
    drift          TEXT NOT NULL,
    checked_at     INTEGER NOT NULL,
    drift_due      INTEGER NOT NULL,
    applied_run    TEXT NOT NULL,
    applied_bundle TEXT NOT NULL,
    applied_at     INTEGER NOT NULL,
    labels         TEXT NOT NULL, -- a JSON object: what cluster_labels has of it
    parents        TEXT NOT NULL, -- a JSON array: what cluster_dependencies has of it
    keeps          TEXT NOT NULL  -- a JSON array: what run_references has of it
) WITHOUT ROWID;
CREATE INDEX summaries_by_owner ON summaries (owner, name);
CREATE INDEX summaries_by_revision ON summaries (revision, name);
CREATE INDEX summaries_by_project ON summaries (project, name);
CREATE INDEX summaries_by_environment ON summaries (environment, name);
CREATE INDEX summaries_by_phase ON summaries (phase, name);
CREATE INDEX summaries_waiting ON summaries (waiting, name) WHERE waiting <> '';
CREATE INDEX summaries_by_drift ON summaries (drift, name) WHERE drift <> '';
CREATE INDEX summaries_due ON summaries (drift_due, checked_at, name) WHERE drift_due <> 0;
CREATE INDEX summaries_checked ON summaries (checked_at, name, drift_due) WHERE drift_due <> 0;
CREATE INDEX summaries_by_bundle ON summaries (applied_bundle) WHERE applied_bundle <> '';

CREATE TABLE cluster_labels (
    label   TEXT NOT NULL,
    value   TEXT NOT NULL,
    cluster TEXT NOT NULL,
    PRIMARY KEY (label, value, cluster)
) WITHOUT ROWID;
CREATE INDEX cluster_labels_by_cluster ON cluster_labels (cluster);

CREATE TABLE cluster_dependencies (
    parent  TEXT NOT NULL,
    cluster TEXT NOT NULL,
    PRIMARY KEY (parent, cluster)
) WITHOUT ROWID;
CREATE INDEX cluster_dependencies_by_cluster ON cluster_dependencies (cluster);

CREATE TABLE transitions (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    cluster TEXT NOT NULL,
    at      INTEGER NOT NULL,
    what    TEXT NOT NULL,
    was     TEXT NOT NULL,
    becomes TEXT NOT NULL,
    reason  TEXT NOT NULL,
    run     TEXT NOT NULL
);
CREATE INDEX transitions_by_cluster ON transitions (cluster, at, id);

CREATE TABLE resources (
    cluster     TEXT NOT NULL,
    address     TEXT NOT NULL,
    type        TEXT NOT NULL,
    provider    TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    run         TEXT NOT NULL,
    changed_at  INTEGER NOT NULL,
    PRIMARY KEY (cluster, address)
);
CREATE INDEX resources_by_type ON resources (type, cluster, address);
CREATE INDEX resources_by_id ON resources (resource_id) WHERE resource_id <> '';

CREATE TABLE suspensions (
    project TEXT PRIMARY KEY, -- empty: all clusters
    doc     BLOB NOT NULL
);

-- The location that a state was encrypted for, if it has moved since: ciphertext
-- that only we could write.
ALTER TABLE state_versions ADD COLUMN origin BLOB;

-- When a bundle was last asked for: until then and a day longer a run may come
-- to need it.
ALTER TABLE bundles ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
UPDATE bundles SET used_at = created_at;

-- What sweeping the bucket asks for.
CREATE INDEX artefacts_in_bucket ON artefacts (blob) WHERE inline IS NULL;
CREATE INDEX bundles_in_bucket ON bundles (blob) WHERE inline IS NULL;
CREATE INDEX state_versions_in_bucket ON state_versions (blob) WHERE inline IS NULL;
CREATE INDEX attempts_with_logs ON attempts (ended_at) WHERE ended_at > 0 AND log_size > 0;

-- Columns and tables above that are filled from records: those can be read only
-- with the keys, which is done at the next start.
CREATE TABLE rebuilds (name TEXT PRIMARY KEY);
INSERT INTO rebuilds (name) VALUES ('runs'), ('clusters');
