-- +goose Up

-- Tokens that people have made; of the token only a hash is kept, doc is sealed.
CREATE TABLE personal_tokens (
    id         TEXT COLLATE "C" PRIMARY KEY,
    hash       BYTEA  NOT NULL,
    owner      TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    doc        BYTEA  NOT NULL
);
CREATE UNIQUE INDEX personal_tokens_by_hash ON personal_tokens (hash);
CREATE INDEX personal_tokens_by_owner ON personal_tokens (owner, created_at);
CREATE INDEX personal_tokens_by_end ON personal_tokens (expires_at);

-- Command lines that ask to be logged in; doc is sealed, and version grows with each change.
CREATE TABLE login_requests (
    secret     BYTEA  PRIMARY KEY,
    code       BYTEA  NOT NULL,
    expires_at BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    doc        BYTEA  NOT NULL
);
CREATE INDEX login_requests_by_code ON login_requests (code);
CREATE INDEX login_requests_by_end ON login_requests (expires_at);

-- Who has asked through Holdfast for what a pull request proposes, as owner of personal_tokens.
CREATE TABLE requesters (
    repo   TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    owner  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repo, number, owner)
);

UPDATE schema_use SET version = 30, oldest = 3;
