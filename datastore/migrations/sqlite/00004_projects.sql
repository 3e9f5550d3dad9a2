-- +goose Up

-- An agent's token may be bound to projects: it is offered runs of these alone.
ALTER TABLE runs ADD COLUMN project TEXT NOT NULL DEFAULT '';
DROP INDEX runs_claimable;
CREATE INDEX runs_claimable ON runs (priority, created_at, id, claim_at, kind, provider, project, state_location) WHERE claim_at IS NOT NULL;
INSERT INTO rebuilds (name) VALUES ('runs') ON CONFLICT (name) DO NOTHING;
