-- +goose Up

-- Chunks of logs are encrypted, as everything else that people and engines write.
INSERT INTO rebuilds (name) VALUES ('logs');
