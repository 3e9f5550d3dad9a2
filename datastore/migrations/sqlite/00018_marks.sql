-- +goose Up

-- The record of a large pull request fills hundreds of pages, which SQLite goes through for
-- whatever comes behind it in the row. What most looks need comes before it: among that its
-- mark, which tells a record from every other one (seal.MarkSize bytes of its ciphertext).
CREATE TABLE pull_requests_next (
    repo        TEXT NOT NULL,
    number      INTEGER NOT NULL,
    state       TEXT NOT NULL,
    version     INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL DEFAULT 0, -- when it was first found to be closed or merged; 0: not yet
    shown_since INTEGER NOT NULL DEFAULT 0, -- since when its comment has been as it was posted; 0: always
    mark        BLOB NOT NULL GENERATED ALWAYS AS (substr(doc, 1, 25)) STORED,
    doc         BLOB NOT NULL,
    PRIMARY KEY (repo, number)
);
INSERT INTO pull_requests_next (repo, number, state, version, ended_at, shown_since, doc)
    SELECT repo, number, state, version, ended_at, shown_since, doc FROM pull_requests;
DROP TABLE pull_requests;
ALTER TABLE pull_requests_next RENAME TO pull_requests;
CREATE INDEX pull_requests_by_state ON pull_requests (state, number);
CREATE INDEX pull_requests_ended ON pull_requests (ended_at) WHERE ended_at > 0;

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
