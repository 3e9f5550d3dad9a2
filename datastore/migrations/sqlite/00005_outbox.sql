-- +goose Up

-- A status that speaks of a comment is posted after it: when after_key has posted
-- what was wanted of it then.
ALTER TABLE posts ADD COLUMN after_key TEXT NOT NULL DEFAULT '';
ALTER TABLE posts ADD COLUMN after_wanted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX posts_statuses ON posts (pr_repo, pr_number) WHERE kind = 'status';
