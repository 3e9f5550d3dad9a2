-- +goose Up

-- A row for each notification and channel, so that each is sent once.
-- ended_at is when it was sent or given up, 0 while it waits; seen_at when it was last noticed,
-- by which it is forgotten; doc is sealed.
CREATE TABLE notifications (
    id            TEXT PRIMARY KEY,
    channel       TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,
    not_before    INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL,
    failures      INTEGER NOT NULL,
    last_error    TEXT NOT NULL,
    ended_at      INTEGER NOT NULL,
    doc           BLOB NOT NULL
);
CREATE INDEX notifications_waiting ON notifications (channel, created_at) WHERE ended_at = 0;
CREATE INDEX notifications_by_seen ON notifications (seen_at);
