-- +goose Up

-- When a pull request was first found to be closed or merged; 0: not yet.
ALTER TABLE pull_requests ADD COLUMN ended_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX pull_requests_ended ON pull_requests (ended_at) WHERE ended_at > 0;

-- When a status was last set; 0: before this was kept.
ALTER TABLE local_statuses ADD COLUMN set_at INTEGER NOT NULL DEFAULT 0;
