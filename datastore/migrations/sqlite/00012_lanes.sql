-- +goose Up

-- In which line a run waits, as lanes.go writes it.
ALTER TABLE runs ADD COLUMN lane TEXT NOT NULL DEFAULT '';
DROP INDEX runs_claimable;
-- Everything that a look for work asks for: it reads no row, and of each lane only
-- the first few entries.
CREATE INDEX runs_lanes ON runs (lane, created_at, id, claim_at, state_location) WHERE claim_at IS NOT NULL;
-- Where something that writes waits.
CREATE INDEX runs_writing ON runs (state_location, claim_at) WHERE claim_at IS NOT NULL AND priority = 0;
INSERT OR IGNORE INTO rebuilds (name) VALUES ('runs');

-- When a run of a lane was last handed out, for an hour.
CREATE TABLE lane_turns (
    lane      TEXT PRIMARY KEY,
    served_at INTEGER NOT NULL
);
CREATE INDEX lane_turns_by_age ON lane_turns (served_at);
