-- +goose Up

-- How often a post was refused in the same way, apart from how often it failed at all. Of
-- what was refused until now that is counted again.
ALTER TABLE posts ADD COLUMN refusal TEXT NOT NULL DEFAULT '';
ALTER TABLE posts ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;
