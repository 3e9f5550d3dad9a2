-- +goose Up

-- When a pull request was merged; zero if it is not.
ALTER TABLE pull_request_clusters ADD COLUMN merged_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX pull_request_clusters_by_merge ON pull_request_clusters (cluster, merged_at, number);
INSERT OR IGNORE INTO rebuilds (name) VALUES ('merges');
