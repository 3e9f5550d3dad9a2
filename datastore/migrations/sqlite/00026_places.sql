-- +goose Up

-- Where the state of each cluster is since its first apply: location, and where it was before
-- it was migrated, '' if it never was. run is the one since which it is there; doc is sealed.
-- Clusters that were applied before are where they were: rebuild.go, as only records tell.
CREATE TABLE state_places (
    cluster  TEXT PRIMARY KEY,
    location TEXT NOT NULL,
    former   TEXT NOT NULL,
    run      TEXT NOT NULL,
    doc      BLOB NOT NULL
);
CREATE INDEX state_places_by_location ON state_places (location);
INSERT OR IGNORE INTO rebuilds (name) VALUES ('places');
