-- +goose Up

-- The schema that the migrations of SQLite result in; what tables and columns are for is said
-- there. A test compares the two. What differs:
--
--   * Numbers have 64 bits. Text sorts as Go sorts it, whatever the database's locale.
--   * Ciphertext is not compressed: it cannot be.
--   * Fences are of a sequence, and no counter that all claims would wait for.
--   * A change has no number until somebody looks for changes (changes.go): transactions that
--     end at the same time end in any order, and who has seen a number must have seen all
--     below it. "drawn" is the order in which changes were made, as far as there is one.
--   * commands.rowid is what SQLite has in every table.

CREATE TABLE runs (
    id             TEXT COLLATE "C" PRIMARY KEY,
    cluster        TEXT COLLATE "C" NOT NULL,
    kind           TEXT COLLATE "C" NOT NULL,
    status         TEXT COLLATE "C" NOT NULL,
    pr_repo        TEXT COLLATE "C" NOT NULL,
    pr_number      BIGINT NOT NULL,
    state_location TEXT COLLATE "C" NOT NULL,
    priority       BIGINT NOT NULL,
    attempt        BIGINT NOT NULL,
    fence          BIGINT NOT NULL,
    claim_at       BIGINT,
    heartbeat_at   BIGINT NOT NULL,
    step           TEXT COLLATE "C" NOT NULL,
    posted_at      BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    version        BIGINT NOT NULL,
    doc            BYTEA NOT NULL,
    provider       TEXT COLLATE "C" NOT NULL DEFAULT '',
    bundle         TEXT COLLATE "C" NOT NULL DEFAULT '',
    project        TEXT COLLATE "C" NOT NULL DEFAULT '',
    lane           TEXT COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 80);
ALTER TABLE runs ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE INDEX runs_by_age ON runs (created_at, id);
CREATE INDEX runs_by_bundle ON runs (bundle);
CREATE INDEX runs_by_cluster ON runs (cluster, created_at, id);
CREATE INDEX runs_by_pull_request ON runs (pr_repo, pr_number, created_at, id);
CREATE INDEX runs_by_state ON runs (state_location, cluster) WHERE state_location NOT LIKE 'clusters/%';
CREATE INDEX runs_by_status ON runs (status, created_at, id);
CREATE INDEX runs_lanes ON runs (lane, created_at, id, claim_at, state_location) WHERE claim_at IS NOT NULL;
CREATE UNIQUE INDEX runs_running ON runs (state_location) WHERE status = 'running';
CREATE INDEX runs_unfinished ON runs (cluster) WHERE status IN ('queued', 'running', 'waiting', 'retrying');
CREATE INDEX runs_writing ON runs (state_location, claim_at) WHERE claim_at IS NOT NULL AND priority = 0;

CREATE TABLE attempts (
    run          TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    attempt      BIGINT NOT NULL,
    fence        BIGINT NOT NULL,
    agent        TEXT COLLATE "C" NOT NULL,
    status       TEXT COLLATE "C" NOT NULL,
    reason       TEXT COLLATE "C" NOT NULL,
    claimed_at   BIGINT NOT NULL,
    ended_at     BIGINT NOT NULL,
    log_size     BIGINT NOT NULL,
    log_received BIGINT NOT NULL,
    log_capped   BIGINT NOT NULL,
    PRIMARY KEY (run, attempt)
);
CREATE INDEX attempts_with_logs ON attempts (ended_at) WHERE ended_at > 0 AND log_size > 0;

CREATE TABLE identity (
    id    BIGINT PRIMARY KEY CHECK (id = 1),
    store TEXT COLLATE "C" NOT NULL,
    doc   BYTEA NOT NULL
);
ALTER TABLE identity ALTER COLUMN doc SET STORAGE EXTERNAL;

CREATE TABLE counters (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE log_chunks (
    run     TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    end_at  BIGINT NOT NULL,
    data    BYTEA NOT NULL,
    PRIMARY KEY (run, attempt, end_at),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, attempt)
);
ALTER TABLE log_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE artefacts (
    run        TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    attempt    BIGINT NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    size       BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    blob       TEXT COLLATE "C" NOT NULL,
    inline     BYTEA,
    PRIMARY KEY (run, name, attempt)
);
ALTER TABLE artefacts ALTER COLUMN inline SET STORAGE EXTERNAL;
CREATE INDEX artefacts_in_bucket ON artefacts (blob) WHERE inline IS NULL;

CREATE TABLE bundles (
    digest     TEXT COLLATE "C" PRIMARY KEY,
    size       BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    blob       TEXT COLLATE "C" NOT NULL,
    inline     BYTEA,
    used_at    BIGINT NOT NULL DEFAULT 0
);
ALTER TABLE bundles ALTER COLUMN inline SET STORAGE EXTERNAL;
CREATE INDEX bundles_in_bucket ON bundles (blob) WHERE inline IS NULL;

CREATE TABLE clusters (
    name    TEXT COLLATE "C" PRIMARY KEY,
    version BIGINT NOT NULL,
    doc     BYTEA NOT NULL
);
ALTER TABLE clusters ALTER COLUMN doc SET STORAGE EXTERNAL;

CREATE TABLE repository_states (
    repo          TEXT COLLATE "C" PRIMARY KEY,
    head          TEXT COLLATE "C" NOT NULL,
    comments_seen BIGINT NOT NULL,
    polled_at     BIGINT NOT NULL,
    last_error    TEXT COLLATE "C" NOT NULL
);

CREATE TABLE tags (
    repo     TEXT COLLATE "C" NOT NULL,
    tag      TEXT COLLATE "C" NOT NULL,
    revision TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repo, tag)
);

CREATE TABLE leases (
    name       TEXT COLLATE "C" PRIMARY KEY,
    owner      TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE TABLE audit (
    id          BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    recorded_at BIGINT NOT NULL,
    actor       TEXT COLLATE "C" NOT NULL,
    action      TEXT COLLATE "C" NOT NULL,
    object      TEXT COLLATE "C" NOT NULL,
    detail      TEXT COLLATE "C" NOT NULL
);
CREATE INDEX audit_by_object ON audit (object, id);

CREATE TABLE pull_request_clusters (
    repo      TEXT COLLATE "C" NOT NULL,
    number    BIGINT NOT NULL,
    cluster   TEXT COLLATE "C" NOT NULL,
    merged_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (repo, number, cluster)
);
CREATE INDEX pull_request_clusters_by_cluster ON pull_request_clusters (cluster, number);
CREATE INDEX pull_request_clusters_by_merge ON pull_request_clusters (cluster, merged_at, number);

CREATE TABLE posts (
    post_key       TEXT COLLATE "C" PRIMARY KEY,
    kind           TEXT COLLATE "C" NOT NULL,
    pr_repo        TEXT COLLATE "C" NOT NULL,
    pr_number      BIGINT NOT NULL,
    runs           TEXT COLLATE "C" NOT NULL,
    head           TEXT COLLATE "C" NOT NULL,
    posted_runs    TEXT COLLATE "C" NOT NULL,
    posted_head    TEXT COLLATE "C" NOT NULL,
    external_id    TEXT COLLATE "C" NOT NULL,
    wanted         BIGINT NOT NULL,
    wanted_at      BIGINT NOT NULL,
    posted         BIGINT NOT NULL,
    posted_at      BIGINT NOT NULL,
    abandoned      BIGINT NOT NULL,
    not_before     BIGINT NOT NULL,
    failures       BIGINT NOT NULL,
    last_error     TEXT COLLATE "C" NOT NULL,
    claimed_by     TEXT COLLATE "C" NOT NULL,
    claimed_until  BIGINT NOT NULL,
    claimed_wanted BIGINT NOT NULL,
    doc            BYTEA NOT NULL,
    after_key      TEXT COLLATE "C" NOT NULL DEFAULT '',
    after_wanted   BIGINT NOT NULL DEFAULT 0,
    repo           TEXT COLLATE "C" NOT NULL DEFAULT '',
    echo           TEXT COLLATE "C" NOT NULL DEFAULT '',
    attempts       TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    refusal        TEXT COLLATE "C" NOT NULL DEFAULT '',
    refusals       BIGINT NOT NULL DEFAULT 0
);
ALTER TABLE posts ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE INDEX posts_comments ON posts (pr_repo, pr_number) WHERE kind = 'comment';
CREATE INDEX posts_due ON posts (wanted_at, post_key) WHERE wanted > posted AND wanted > abandoned;
CREATE INDEX posts_statuses ON posts (pr_repo, pr_number) WHERE kind = 'status';
CREATE INDEX posts_turns ON posts ( (CASE kind WHEN 'issue' THEN 1 WHEN 'reply' THEN 2 WHEN 'reaction' THEN 3 ELSE 0 END), wanted_at, post_key )
    WHERE wanted > posted AND wanted > abandoned;

CREATE TABLE commands (
    id         TEXT COLLATE "C" PRIMARY KEY,
    repo       TEXT COLLATE "C" NOT NULL,
    comment_id TEXT COLLATE "C" NOT NULL,
    line       TEXT COLLATE "C" NOT NULL,
    status     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    doc        BYTEA NOT NULL,
    rowid      BIGINT GENERATED BY DEFAULT AS IDENTITY
);
ALTER TABLE commands ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE INDEX commands_by_status ON commands (status, created_at, id);
CREATE UNIQUE INDEX commands_once ON commands (repo, comment_id, line) WHERE comment_id <> '';

CREATE TABLE states (
    location     TEXT COLLATE "C" PRIMARY KEY,
    last_version BIGINT NOT NULL,
    current      BIGINT NOT NULL,
    serial       BIGINT NOT NULL
);

CREATE TABLE state_versions (
    location    TEXT COLLATE "C" NOT NULL,
    version     BIGINT NOT NULL,
    serial      BIGINT NOT NULL,
    lineage     TEXT COLLATE "C" NOT NULL,
    size        BIGINT NOT NULL,
    run         TEXT COLLATE "C" NOT NULL,
    attempt     BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    quarantined BIGINT NOT NULL,
    digest      TEXT COLLATE "C" NOT NULL,
    blob        TEXT COLLATE "C" NOT NULL,
    inline      BYTEA,
    origin      BYTEA,
    PRIMARY KEY (location, version)
);
ALTER TABLE state_versions ALTER COLUMN inline SET STORAGE EXTERNAL, ALTER COLUMN origin SET STORAGE EXTERNAL;
CREATE INDEX state_versions_in_bucket ON state_versions (blob) WHERE inline IS NULL;

CREATE TABLE state_locks (
    location   TEXT COLLATE "C" PRIMARY KEY,
    lock_id    TEXT COLLATE "C" NOT NULL,
    operation  TEXT COLLATE "C" NOT NULL,
    who        TEXT COLLATE "C" NOT NULL,
    engine     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    info       BYTEA,
    run        TEXT COLLATE "C" NOT NULL,
    attempt    BIGINT NOT NULL,
    fence      BIGINT NOT NULL
);
ALTER TABLE state_locks ALTER COLUMN info SET STORAGE EXTERNAL;

CREATE TABLE local_pull_requests (
    repo   TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    doc    BYTEA NOT NULL,
    PRIMARY KEY (repo, number)
);
ALTER TABLE local_pull_requests ALTER COLUMN doc SET STORAGE EXTERNAL;

CREATE TABLE local_comments (
    id         BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    repo       TEXT COLLATE "C" NOT NULL,
    number     BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    doc        BYTEA NOT NULL
);
ALTER TABLE local_comments ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE INDEX local_comments_by_pull_request ON local_comments (repo, number, id);
CREATE INDEX local_comments_by_time ON local_comments (repo, updated_at);

CREATE TABLE local_statuses (
    repo     TEXT COLLATE "C" NOT NULL,
    revision TEXT COLLATE "C" NOT NULL,
    context  TEXT COLLATE "C" NOT NULL,
    doc      BYTEA NOT NULL,
    set_at   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (repo, revision, context)
);
ALTER TABLE local_statuses ALTER COLUMN doc SET STORAGE EXTERNAL;

CREATE TABLE run_references (
    holder TEXT COLLATE "C" NOT NULL,
    run    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (holder, run)
);
CREATE INDEX run_references_by_run ON run_references (run);

CREATE TABLE summaries (
    name           TEXT COLLATE "C" PRIMARY KEY,
    line           TEXT COLLATE "C" NOT NULL,
    owner          TEXT COLLATE "C" NOT NULL,
    revision       TEXT COLLATE "C" NOT NULL,
    project        TEXT COLLATE "C" NOT NULL,
    environment    TEXT COLLATE "C" NOT NULL,
    phase          TEXT COLLATE "C" NOT NULL,
    waiting        TEXT COLLATE "C" NOT NULL,
    drift          TEXT COLLATE "C" NOT NULL,
    checked_at     BIGINT NOT NULL,
    drift_due      BIGINT NOT NULL,
    applied_run    TEXT COLLATE "C" NOT NULL,
    applied_bundle TEXT COLLATE "C" NOT NULL,
    applied_at     BIGINT NOT NULL,
    labels         TEXT COLLATE "C" NOT NULL,
    parents        TEXT COLLATE "C" NOT NULL,
    keeps          TEXT COLLATE "C" NOT NULL,
    template       TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX summaries_by_bundle ON summaries (applied_bundle) WHERE applied_bundle <> '';
CREATE INDEX summaries_by_drift ON summaries (drift, name) WHERE drift <> '';
CREATE INDEX summaries_by_environment ON summaries (environment, name);
CREATE INDEX summaries_by_owner ON summaries (owner, name);
CREATE INDEX summaries_by_phase ON summaries (phase, name);
CREATE INDEX summaries_by_project ON summaries (project, name);
CREATE INDEX summaries_by_revision ON summaries (revision, name);
CREATE INDEX summaries_by_template ON summaries (template, name) WHERE template <> '';
CREATE INDEX summaries_checked ON summaries (checked_at, name, drift_due) WHERE drift_due <> 0;
CREATE INDEX summaries_due ON summaries (drift_due, checked_at, name) WHERE drift_due <> 0;
CREATE INDEX summaries_waiting ON summaries (waiting, name) WHERE waiting <> '';

CREATE TABLE cluster_labels (
    label   TEXT COLLATE "C" NOT NULL,
    value   TEXT COLLATE "C" NOT NULL,
    cluster TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (label, value, cluster)
);
CREATE INDEX cluster_labels_by_cluster ON cluster_labels (cluster);

CREATE TABLE cluster_dependencies (
    parent  TEXT COLLATE "C" NOT NULL,
    cluster TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (parent, cluster)
);
CREATE INDEX cluster_dependencies_by_cluster ON cluster_dependencies (cluster);

CREATE TABLE transitions (
    id      BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    cluster TEXT COLLATE "C" NOT NULL,
    at      BIGINT NOT NULL,
    what    TEXT COLLATE "C" NOT NULL,
    was     TEXT COLLATE "C" NOT NULL,
    becomes TEXT COLLATE "C" NOT NULL,
    reason  TEXT COLLATE "C" NOT NULL,
    run     TEXT COLLATE "C" NOT NULL
);
CREATE INDEX transitions_by_cluster ON transitions (cluster, at, id);

CREATE TABLE resources (
    cluster     TEXT COLLATE "C" NOT NULL,
    address     TEXT COLLATE "C" NOT NULL,
    type        TEXT COLLATE "C" NOT NULL,
    provider    TEXT COLLATE "C" NOT NULL,
    resource_id TEXT COLLATE "C" NOT NULL,
    run         TEXT COLLATE "C" NOT NULL,
    changed_at  BIGINT NOT NULL,
    PRIMARY KEY (cluster, address)
);
CREATE INDEX resources_by_id ON resources (resource_id) WHERE resource_id <> '';
CREATE INDEX resources_by_type ON resources (type, cluster, address);

CREATE TABLE suspensions (
    project TEXT COLLATE "C" PRIMARY KEY,
    doc     BYTEA NOT NULL
);
ALTER TABLE suspensions ALTER COLUMN doc SET STORAGE EXTERNAL;

CREATE TABLE rebuilds (
    name TEXT COLLATE "C" PRIMARY KEY
);

CREATE TABLE impacts (
    pr_repo   TEXT COLLATE "C" NOT NULL,
    pr_number BIGINT NOT NULL,
    open_at   BIGINT NOT NULL,
    doc       BYTEA NOT NULL,
    PRIMARY KEY (pr_repo, pr_number)
);
ALTER TABLE impacts ALTER COLUMN doc SET STORAGE EXTERNAL;

CREATE TABLE upgrades (
    repo        TEXT COLLATE "C" NOT NULL,
    upgrade_key TEXT COLLATE "C" NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    version     BIGINT NOT NULL,
    doc         BYTEA NOT NULL,
    PRIMARY KEY (repo, upgrade_key)
);
ALTER TABLE upgrades ALTER COLUMN doc SET STORAGE EXTERNAL;

CREATE TABLE unsaved_states (
    location TEXT COLLATE "C" PRIMARY KEY,
    cluster  TEXT COLLATE "C" NOT NULL,
    run      TEXT COLLATE "C" NOT NULL,
    attempt  BIGINT NOT NULL,
    version  BIGINT NOT NULL,
    found_at BIGINT NOT NULL,
    job      TEXT COLLATE "C" NOT NULL,
    jobs     BIGINT NOT NULL
);
CREATE INDEX unsaved_by_cluster ON unsaved_states (cluster);

CREATE SEQUENCE changes_drawn;
CREATE TABLE changes (
    seq     BIGINT,
    kind    TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    cluster TEXT COLLATE "C" NOT NULL,
    deleted BIGINT NOT NULL,
    drawn   BIGINT NOT NULL DEFAULT nextval('changes_drawn')
);
CREATE UNIQUE INDEX changes_by_object ON changes (kind, name);
CREATE INDEX changes_deleted ON changes (seq) WHERE deleted = 1;
CREATE UNIQUE INDEX changes_by_number ON changes (seq);
CREATE INDEX changes_unnumbered ON changes (drawn) WHERE seq IS NULL;

CREATE TABLE lane_turns (
    lane      TEXT COLLATE "C" PRIMARY KEY,
    served_at BIGINT NOT NULL
);
CREATE INDEX lane_turns_by_age ON lane_turns (served_at);

CREATE TABLE pull_requests (
    repo        TEXT COLLATE "C" NOT NULL,
    number      BIGINT NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    version     BIGINT NOT NULL,
    ended_at    BIGINT NOT NULL DEFAULT 0,
    shown_since BIGINT NOT NULL DEFAULT 0,
    mark        BYTEA NOT NULL GENERATED ALWAYS AS (substr(doc, 1, 25)) STORED,
    doc         BYTEA NOT NULL,
    PRIMARY KEY (repo, number)
);
ALTER TABLE pull_requests ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE INDEX pull_requests_by_state ON pull_requests (state, number);
CREATE INDEX pull_requests_ended ON pull_requests (ended_at) WHERE ended_at > 0;

CREATE SEQUENCE fences;
INSERT INTO counters (name, value) VALUES ('changes', 0), ('changes_forgotten', 0);

-- +goose StatementBegin
CREATE FUNCTION note_change(of_kind TEXT, of_name TEXT, of_cluster TEXT, is_deleted BIGINT) RETURNS VOID LANGUAGE sql AS $$
    INSERT INTO changes (kind, name, cluster, deleted) VALUES (of_kind, of_name, of_cluster, is_deleted)
    ON CONFLICT (kind, name) DO UPDATE SET seq = NULL, drawn = nextval('changes_drawn'), cluster = excluded.cluster, deleted = excluded.deleted
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION run_noted() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change('Run', OLD.id, OLD.cluster, 1);
    ELSE
        PERFORM note_change('Run', NEW.id, NEW.cluster, 0);
    END IF;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION cluster_noted() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change('Cluster', OLD.name, OLD.name, 1);
    ELSE
        PERFORM note_change('Cluster', NEW.name, NEW.name, 0);
    END IF;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION pull_request_noted() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change('PullRequest', OLD.repo || '#' || OLD.number, '', 1);
    ELSE
        PERFORM note_change('PullRequest', NEW.repo || '#' || NEW.number, '', 0);
    END IF;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER run_created AFTER INSERT ON runs FOR EACH ROW EXECUTE FUNCTION run_noted();
CREATE TRIGGER run_changed AFTER UPDATE OF version, step ON runs FOR EACH ROW
    WHEN (OLD.version <> NEW.version OR OLD.step <> NEW.step) EXECUTE FUNCTION run_noted();
CREATE TRIGGER run_deleted AFTER DELETE ON runs FOR EACH ROW EXECUTE FUNCTION run_noted();
CREATE TRIGGER cluster_created AFTER INSERT ON clusters FOR EACH ROW EXECUTE FUNCTION cluster_noted();
CREATE TRIGGER cluster_changed AFTER UPDATE OF version ON clusters FOR EACH ROW
    WHEN (OLD.version <> NEW.version) EXECUTE FUNCTION cluster_noted();
CREATE TRIGGER cluster_deleted AFTER DELETE ON clusters FOR EACH ROW EXECUTE FUNCTION cluster_noted();
CREATE TRIGGER pull_request_created AFTER INSERT ON pull_requests FOR EACH ROW EXECUTE FUNCTION pull_request_noted();
CREATE TRIGGER pull_request_changed AFTER UPDATE OF version ON pull_requests FOR EACH ROW
    WHEN (OLD.version <> NEW.version) EXECUTE FUNCTION pull_request_noted();
CREATE TRIGGER pull_request_deleted AFTER DELETE ON pull_requests FOR EACH ROW EXECUTE FUNCTION pull_request_noted();
