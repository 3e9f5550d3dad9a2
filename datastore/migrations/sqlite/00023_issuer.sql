-- +goose Up

-- Holdfast as an issuer of tokens (OpenID Connect). issuer is one row: the URL that tokens
-- name, and when the first one was issued with it; 0: none was. issuer_keys are the keys that
-- sign, of which each signs until the next one does; doc is sealed.
CREATE TABLE issuer (
    id        INTEGER PRIMARY KEY,
    url       TEXT NOT NULL,
    issued_at INTEGER NOT NULL
);

CREATE TABLE issuer_keys (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    signs_from INTEGER NOT NULL,
    doc        BLOB NOT NULL
);
