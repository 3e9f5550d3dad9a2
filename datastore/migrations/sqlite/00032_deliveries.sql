-- +goose Up

-- Webhooks that were taken in, with what became of each; the newest are kept.
CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    received_at INTEGER NOT NULL,
    delivery    TEXT    NOT NULL,
    event       TEXT    NOT NULL,
    repo        TEXT    NOT NULL,
    about       TEXT    NOT NULL,
    status      INTEGER NOT NULL,
    result      TEXT    NOT NULL,
    took        INTEGER NOT NULL
);
