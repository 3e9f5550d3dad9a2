-- +goose Up

-- As migration 00023 of SQLite.
CREATE TABLE issuer (
    id        BIGINT PRIMARY KEY,
    url       TEXT COLLATE "C" NOT NULL,
    issued_at BIGINT NOT NULL
);

CREATE TABLE issuer_keys (
    number     BIGINT PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    signs_from BIGINT NOT NULL,
    doc        BYTEA NOT NULL
);
ALTER TABLE issuer_keys ALTER COLUMN doc SET STORAGE EXTERNAL;

UPDATE schema_use SET version = 5, oldest = 2;
