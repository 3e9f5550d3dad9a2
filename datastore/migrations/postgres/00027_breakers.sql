-- +goose Up

-- As migration 00027 of SQLite.
CREATE TABLE breakers (
    provider TEXT COLLATE "C" PRIMARY KEY,
    doc      BYTEA NOT NULL
);
ALTER TABLE breakers ALTER COLUMN doc SET STORAGE EXTERNAL;

UPDATE schema_use SET version = 27, oldest = 3;
