-- +goose Up

-- What is posted first, as postTurn in outbox.go orders it.
CREATE INDEX posts_turns ON posts (
    (CASE kind WHEN 'issue' THEN 1 WHEN 'reply' THEN 2 WHEN 'reaction' THEN 3 ELSE 0 END), wanted_at, post_key
) WHERE wanted > posted AND wanted > abandoned;
