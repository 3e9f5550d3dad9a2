-- +goose Up

-- As migration 00026 of SQLite.
CREATE TABLE state_places (
    cluster  TEXT COLLATE "C" PRIMARY KEY,
    location TEXT COLLATE "C" NOT NULL,
    former   TEXT COLLATE "C" NOT NULL,
    run      TEXT COLLATE "C" NOT NULL,
    doc      BYTEA NOT NULL
);
ALTER TABLE state_places ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE INDEX state_places_by_location ON state_places (location);
-- A database without runs has nothing to write again, and stays one that records can be copied to.
INSERT INTO rebuilds (name) SELECT 'places' WHERE EXISTS (SELECT 1 FROM runs) ON CONFLICT (name) DO NOTHING;

UPDATE schema_use SET version = 26, oldest = 3;
