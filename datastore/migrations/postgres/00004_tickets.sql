-- +goose Up

-- What was started for an attempt exchanges its ticket for the assignment, once.
CREATE TABLE tickets (
    run          TEXT COLLATE "C" NOT NULL,
    attempt      BIGINT NOT NULL,
    runner       TEXT COLLATE "C" NOT NULL,
    hash         BYTEA  NOT NULL,
    process      BYTEA  NOT NULL,
    host         TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL,
    exchanged_at BIGINT NOT NULL,
    PRIMARY KEY (run, attempt)
);
