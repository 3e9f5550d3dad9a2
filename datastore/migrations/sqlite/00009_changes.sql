-- +goose Up

-- What has changed since when: for each object the newest of its changes only, so
-- that the table grows with what there is, and not with what happens. A number is
-- never used twice.
CREATE TABLE changes (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT NOT NULL, -- Cluster, Run or PullRequest
    name    TEXT NOT NULL, -- REPO#NUMBER of a pull request
    cluster TEXT NOT NULL, -- of a cluster and of a run
    deleted INTEGER NOT NULL
);
CREATE UNIQUE INDEX changes_by_object ON changes (kind, name);
CREATE INDEX changes_deleted ON changes (seq) WHERE deleted = 1;

-- Up to which number deletions are forgotten: who has seen less looks at everything.
INSERT INTO counters (name, value) VALUES ('changes_forgotten', 0);

-- Triggers, so that no write is forgotten. A heartbeat without a new step is not a change.

-- +goose StatementBegin
CREATE TRIGGER run_created AFTER INSERT ON runs BEGIN
    INSERT OR REPLACE INTO changes (kind, name, cluster, deleted) VALUES ('Run', NEW.id, NEW.cluster, 0);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER run_changed AFTER UPDATE OF version, step ON runs WHEN OLD.version <> NEW.version OR OLD.step <> NEW.step BEGIN
    INSERT OR REPLACE INTO changes (kind, name, cluster, deleted) VALUES ('Run', NEW.id, NEW.cluster, 0);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER run_deleted AFTER DELETE ON runs BEGIN
    INSERT OR REPLACE INTO changes (kind, name, cluster, deleted) VALUES ('Run', OLD.id, OLD.cluster, 1);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER cluster_created AFTER INSERT ON clusters BEGIN
    INSERT OR REPLACE INTO changes (kind, name, cluster, deleted) VALUES ('Cluster', NEW.name, NEW.name, 0);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER cluster_changed AFTER UPDATE OF version ON clusters WHEN OLD.version <> NEW.version BEGIN
    INSERT OR REPLACE INTO changes (kind, name, cluster, deleted) VALUES ('Cluster', NEW.name, NEW.name, 0);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER cluster_deleted AFTER DELETE ON clusters BEGIN
    INSERT OR REPLACE INTO changes (kind, name, cluster, deleted) VALUES ('Cluster', OLD.name, OLD.name, 1);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER pull_request_created AFTER INSERT ON pull_requests BEGIN
    INSERT OR REPLACE INTO changes (kind, name, cluster, deleted) VALUES ('PullRequest', NEW.repo || '#' || NEW.number, '', 0);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pull_request_changed AFTER UPDATE OF version ON pull_requests WHEN OLD.version <> NEW.version BEGIN
    INSERT OR REPLACE INTO changes (kind, name, cluster, deleted) VALUES ('PullRequest', NEW.repo || '#' || NEW.number, '', 0);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pull_request_deleted AFTER DELETE ON pull_requests BEGIN
    INSERT OR REPLACE INTO changes (kind, name, cluster, deleted) VALUES ('PullRequest', OLD.repo || '#' || OLD.number, '', 1);
END;
-- +goose StatementEnd
