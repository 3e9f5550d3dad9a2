-- +goose Up

-- Which repository a post goes to: one whose host hangs is passed over.
ALTER TABLE posts ADD COLUMN repo TEXT NOT NULL DEFAULT '';
UPDATE posts SET repo = pr_repo;
