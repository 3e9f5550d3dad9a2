-- +goose Up

-- From where it was done: an address and what was shown there; empty for what Holdfast does.
ALTER TABLE audit ADD COLUMN origin TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Who has logged in. id is the issuer, a space and the subject; doc is sealed.
CREATE TABLE people (
    id      TEXT COLLATE "C" PRIMARY KEY,
    seen_at BIGINT NOT NULL,
    doc     BYTEA  NOT NULL
);

-- Who is who: an account of a code host belongs to one person.
CREATE TABLE person_links (
    account TEXT COLLATE "C" PRIMARY KEY,
    person  TEXT COLLATE "C" NOT NULL
);
CREATE INDEX person_links_by_person ON person_links (person);

-- Logins in browsers. hash and former are of what the cookie has, and had before it was
-- rotated; doc is sealed.
CREATE TABLE sessions (
    id         TEXT COLLATE "C" PRIMARY KEY,
    hash       BYTEA  NOT NULL,
    former     BYTEA  NOT NULL,
    person     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    rotated_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    doc        BYTEA  NOT NULL
);
CREATE UNIQUE INDEX sessions_by_hash ON sessions (hash);
CREATE INDEX sessions_by_former ON sessions (former);
CREATE INDEX sessions_by_person ON sessions (person, created_at);
CREATE INDEX sessions_by_end ON sessions (expires_at);

UPDATE schema_use SET version = 29, oldest = 3;
