-- +goose Up

-- What is on record of providers that throttle, or are out of order. doc is sealed.
CREATE TABLE breakers (
    provider TEXT PRIMARY KEY,
    doc      BLOB NOT NULL
);
