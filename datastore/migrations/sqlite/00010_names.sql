-- +goose Up

-- In records trial is sample, deleted is removed, ending is deletion, and remedy
-- is revert: rebuild.go.
INSERT OR IGNORE INTO rebuilds (name) VALUES ('names');

ALTER TABLE sources RENAME TO repository_states;
