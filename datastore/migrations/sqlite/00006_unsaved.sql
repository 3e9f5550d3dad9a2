-- +goose Up

-- States that engines wrote and their backends do not have. While one is here,
-- nothing but a run of kind state is claimed at its location.
CREATE TABLE unsaved_states (
    location TEXT PRIMARY KEY,
    cluster  TEXT NOT NULL,
    run      TEXT NOT NULL,
    attempt  INTEGER NOT NULL,
    version  INTEGER NOT NULL, -- of the quarantined one; 0: the run's artefact
    found_at INTEGER NOT NULL,
    job      TEXT NOT NULL, -- the newest run that was to push it
    jobs     INTEGER NOT NULL
);
CREATE INDEX unsaved_by_cluster ON unsaved_states (cluster);
