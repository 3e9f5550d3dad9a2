-- +goose Up

-- As migration 00035 of SQLite.
CREATE TABLE notifications (
    id            TEXT COLLATE "C" PRIMARY KEY,
    channel       TEXT COLLATE "C" NOT NULL,
    created_at    BIGINT NOT NULL,
    seen_at       BIGINT NOT NULL,
    not_before    BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL,
    failures      BIGINT NOT NULL,
    last_error    TEXT COLLATE "C" NOT NULL,
    ended_at      BIGINT NOT NULL,
    doc           BYTEA NOT NULL
);
ALTER TABLE notifications ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE INDEX notifications_waiting ON notifications (channel, created_at) WHERE ended_at = 0;
CREATE INDEX notifications_by_seen ON notifications (seen_at);

UPDATE schema_use SET version = 35, oldest = 3;
