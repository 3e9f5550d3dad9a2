-- +goose Up

-- Logs were in plain text once, and stay in pages that are free since: wipe.go rewrites a
-- database that was in use before, without them.
INSERT OR IGNORE INTO rebuilds (name) SELECT 'pages' WHERE EXISTS (SELECT 1 FROM identity);
