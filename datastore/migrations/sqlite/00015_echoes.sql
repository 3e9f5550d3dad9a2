-- +goose Up

-- What the forge has of a comment: as it was posted, and as it may have been since.
ALTER TABLE posts ADD COLUMN echo TEXT NOT NULL DEFAULT '';
ALTER TABLE posts ADD COLUMN attempts TEXT NOT NULL DEFAULT '[]';
-- Since when the comment of a pull request has been as it was posted; zero if always.
ALTER TABLE pull_requests ADD COLUMN shown_since INTEGER NOT NULL DEFAULT 0;
