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

-- The oldest schema whose servers can use this one. Each later migration that makes the
-- schema unfit for older servers raises it.
CREATE TABLE schema_use (
    one    BIGINT PRIMARY KEY CHECK (one = 1),
    oldest BIGINT NOT NULL
);
INSERT INTO schema_use (one, oldest) VALUES (1, 2);
