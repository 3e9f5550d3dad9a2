-- +goose Up

-- What was started for an attempt exchanges its ticket for the assignment, once.
CREATE TABLE tickets (
    run          TEXT    NOT NULL,
    attempt      INTEGER NOT NULL,
    runner       TEXT    NOT NULL,
    hash         BLOB    NOT NULL,
    process      BLOB    NOT NULL,
    host         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    exchanged_at INTEGER NOT NULL,
    PRIMARY KEY (run, attempt)
);
