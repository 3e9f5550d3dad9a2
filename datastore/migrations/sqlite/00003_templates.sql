-- +goose Up

-- What changes of templates would do: all that is known of a pull request's.
CREATE TABLE impacts (
    pr_repo   TEXT NOT NULL,
    pr_number INTEGER NOT NULL,
    open_at   INTEGER NOT NULL, -- when the pull request was last known to be open
    doc       BLOB NOT NULL,
    PRIMARY KEY (pr_repo, pr_number)
);

-- Pull requests of ours that propose newer versions.
CREATE TABLE upgrades (
    repo        TEXT NOT NULL,
    upgrade_key TEXT NOT NULL,
    state       TEXT NOT NULL,
    version     INTEGER NOT NULL,
    doc         BLOB NOT NULL,
    PRIMARY KEY (repo, upgrade_key)
);

-- Who is made from a template, without decrypting all records.
ALTER TABLE summaries ADD COLUMN template TEXT NOT NULL DEFAULT '';
CREATE INDEX summaries_by_template ON summaries (template, name) WHERE template <> '';
INSERT INTO rebuilds (name) VALUES ('clusters') ON CONFLICT (name) DO NOTHING;
