-- +goose Up

-- Times are nanoseconds since 1970 in UTC, zero for none. Columns named doc and
-- inline hold ciphertext: what people and engines wrote may contain secrets.

-- One row: what this database is called in its bucket, and ciphertext of a known
-- text, to tell a wrong key at once.
CREATE TABLE identity (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    store TEXT NOT NULL,
    doc   BLOB NOT NULL
);

CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);
INSERT INTO counters (name, value) VALUES ('fence', 0);

CREATE TABLE runs (
    id             TEXT PRIMARY KEY,
    cluster        TEXT NOT NULL,
    kind           TEXT NOT NULL,
    status         TEXT NOT NULL,
    pr_repo        TEXT NOT NULL,
    pr_number      INTEGER NOT NULL,
    state_location TEXT NOT NULL,
    priority       INTEGER NOT NULL, -- 0: writes; 1: reads
    attempt        INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    claim_at       INTEGER, -- from when on it may be claimed; NULL: not at all
    heartbeat_at   INTEGER NOT NULL,
    step           TEXT NOT NULL,
    posted_at      INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    doc            BLOB NOT NULL
);
-- What promises that a state location has one running run, whatever the code does.
CREATE UNIQUE INDEX runs_running ON runs (state_location) WHERE status = 'running';
-- In the order of claims, and of those alone that can be claimed: their number,
-- not that of all runs ever, is what a look for work costs.
CREATE INDEX runs_claimable ON runs (priority, created_at, id) WHERE claim_at IS NOT NULL;
CREATE INDEX runs_by_age ON runs (created_at, id);
CREATE INDEX runs_by_status ON runs (status, created_at, id);
CREATE INDEX runs_by_cluster ON runs (cluster, created_at, id);
CREATE INDEX runs_by_pull_request ON runs (pr_repo, pr_number, created_at, id);

CREATE TABLE attempts (
    run          TEXT NOT NULL REFERENCES runs (id),
    attempt      INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    agent        TEXT NOT NULL,
    status       TEXT NOT NULL,
    reason       TEXT NOT NULL,
    claimed_at   INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL,
    log_size     INTEGER NOT NULL, -- bytes that are kept
    log_received INTEGER NOT NULL, -- bytes that were sent; more than log_size beyond the cap
    log_capped   INTEGER NOT NULL,
    PRIMARY KEY (run, attempt)
);

-- Sorted by the end of each chunk, so that reading from an offset is one seek.
CREATE TABLE log_chunks (
    run      TEXT NOT NULL,
    attempt  INTEGER NOT NULL,
    end_at   INTEGER NOT NULL,
    data     BLOB NOT NULL,
    PRIMARY KEY (run, attempt, end_at),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, attempt)
) WITHOUT ROWID;

CREATE TABLE artefacts (
    run        TEXT NOT NULL REFERENCES runs (id),
    attempt    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    blob       TEXT NOT NULL,
    inline     BLOB,
    PRIMARY KEY (run, name, attempt)
);

CREATE TABLE bundles (
    digest     TEXT PRIMARY KEY,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    blob       TEXT NOT NULL,
    inline     BLOB
);

CREATE TABLE clusters (
    name        TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    project     TEXT NOT NULL,
    environment TEXT NOT NULL,
    phase       TEXT NOT NULL,
    waiting     TEXT NOT NULL,
    labels      TEXT NOT NULL, -- a JSON object
    applied_run TEXT NOT NULL,
    version     INTEGER NOT NULL,
    doc         BLOB NOT NULL
);
CREATE INDEX clusters_by_owner ON clusters (owner, name);
CREATE INDEX clusters_waiting ON clusters (waiting, name) WHERE waiting <> '';

CREATE TABLE sources (
    repo          TEXT PRIMARY KEY,
    head          TEXT NOT NULL,
    comments_seen INTEGER NOT NULL,
    polled_at     INTEGER NOT NULL,
    last_error    TEXT NOT NULL
);

CREATE TABLE tags (
    repo     TEXT NOT NULL,
    tag      TEXT NOT NULL,
    revision TEXT NOT NULL,
    PRIMARY KEY (repo, tag)
);

CREATE TABLE leases (
    name       TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    expires_at INTEGER NOT NULL
);

CREATE TABLE audit (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    recorded_at INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    action      TEXT NOT NULL,
    object      TEXT NOT NULL,
    detail      TEXT NOT NULL
);
CREATE INDEX audit_by_object ON audit (object, id);

CREATE TABLE pull_requests (
    repo    TEXT NOT NULL,
    number  INTEGER NOT NULL,
    state   TEXT NOT NULL,
    version INTEGER NOT NULL,
    doc     BLOB NOT NULL,
    PRIMARY KEY (repo, number)
);
CREATE INDEX pull_requests_by_state ON pull_requests (state, number);

CREATE TABLE pull_request_clusters (
    repo    TEXT NOT NULL,
    number  INTEGER NOT NULL,
    cluster TEXT NOT NULL,
    PRIMARY KEY (repo, number, cluster)
);
CREATE INDEX pull_request_clusters_by_cluster ON pull_request_clusters (cluster, number);

CREATE TABLE posts (
    post_key       TEXT PRIMARY KEY,
    kind           TEXT NOT NULL,
    pr_repo        TEXT NOT NULL,
    pr_number      INTEGER NOT NULL,
    runs           TEXT NOT NULL, -- a JSON array: the runs that the wanted content shows
    head           TEXT NOT NULL,
    posted_runs    TEXT NOT NULL, -- those that the posted content shows
    posted_head    TEXT NOT NULL,
    external_id    TEXT NOT NULL,
    wanted         INTEGER NOT NULL,
    wanted_at      INTEGER NOT NULL,
    posted         INTEGER NOT NULL,
    posted_at      INTEGER NOT NULL,
    abandoned      INTEGER NOT NULL, -- the wanted that was given up
    not_before     INTEGER NOT NULL,
    failures       INTEGER NOT NULL,
    last_error     TEXT NOT NULL,
    claimed_by     TEXT NOT NULL,
    claimed_until  INTEGER NOT NULL,
    claimed_wanted INTEGER NOT NULL,
    doc            BLOB NOT NULL
);
CREATE INDEX posts_due ON posts (wanted_at, post_key) WHERE wanted > posted AND wanted > abandoned;
CREATE INDEX posts_comments ON posts (pr_repo, pr_number) WHERE kind = 'comment';

CREATE TABLE commands (
    id         TEXT PRIMARY KEY,
    repo       TEXT NOT NULL,
    comment_id TEXT NOT NULL,
    line       TEXT NOT NULL, -- digest of the command's text
    status     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    doc        BLOB NOT NULL
);
CREATE UNIQUE INDEX commands_once ON commands (repo, comment_id, line) WHERE comment_id <> '';
CREATE INDEX commands_by_status ON commands (status, created_at, id);

CREATE TABLE states (
    location     TEXT PRIMARY KEY,
    last_version INTEGER NOT NULL, -- the last number that was given, quarantined ones included
    current      INTEGER NOT NULL, -- the newest version that is served; 0: none
    serial       INTEGER NOT NULL  -- of current
);

CREATE TABLE state_versions (
    location    TEXT NOT NULL,
    version     INTEGER NOT NULL,
    serial      INTEGER NOT NULL,
    lineage     TEXT NOT NULL,
    size        INTEGER NOT NULL,
    run         TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    quarantined INTEGER NOT NULL,
    digest      TEXT NOT NULL, -- keyed
    blob        TEXT NOT NULL,
    inline      BLOB,
    PRIMARY KEY (location, version)
);

CREATE TABLE state_locks (
    location   TEXT PRIMARY KEY,
    lock_id    TEXT NOT NULL,
    operation  TEXT NOT NULL,
    who        TEXT NOT NULL,
    engine     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    info       BLOB,
    run        TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    fence      INTEGER NOT NULL
);

CREATE TABLE local_pull_requests (
    repo   TEXT NOT NULL,
    number INTEGER NOT NULL,
    doc    BLOB NOT NULL,
    PRIMARY KEY (repo, number)
);

CREATE TABLE local_comments (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    repo       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    doc        BLOB NOT NULL
);
CREATE INDEX local_comments_by_pull_request ON local_comments (repo, number, id);
CREATE INDEX local_comments_by_time ON local_comments (repo, updated_at);

CREATE TABLE local_statuses (
    repo     TEXT NOT NULL,
    revision TEXT NOT NULL,
    context  TEXT NOT NULL,
    doc      BLOB NOT NULL,
    PRIMARY KEY (repo, revision, context)
);
