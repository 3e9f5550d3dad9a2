-- +goose Up

-- Which servers have the database, each by a time of the database's clock.
CREATE TABLE replicas (
    identity       TEXT COLLATE "C" PRIMARY KEY,
    nonce          TEXT COLLATE "C" NOT NULL,
    place          TEXT COLLATE "C" NOT NULL,
    name           TEXT COLLATE "C" NOT NULL,
    alone          TEXT COLLATE "C" NOT NULL,
    version        TEXT COLLATE "C" NOT NULL,
    protocol       BIGINT NOT NULL,
    schema_version BIGINT NOT NULL,
    address        TEXT COLLATE "C" NOT NULL,
    blobs          TEXT COLLATE "C" NOT NULL,
    locks          TEXT COLLATE "C" NOT NULL,
    started_at     BIGINT NOT NULL,
    heartbeat_at   BIGINT NOT NULL
) WITH (fillfactor = 70);

-- A schema and the oldest one whose servers can use it. Each later migration updates both: one
-- that does not keeps older servers out.
CREATE TABLE schema_use (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL,
    oldest  BIGINT NOT NULL
);
INSERT INTO schema_use (one, version, oldest) VALUES (1, 2, 2);
