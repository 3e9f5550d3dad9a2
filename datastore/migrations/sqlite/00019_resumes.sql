-- +goose Up

-- A suspension and its end were one action, whose detail began with which of them it was:
-- true or false, then the reason, if there was one.
UPDATE audit SET
    action = CASE WHEN detail GLOB 'false*' THEN replace(action, '.suspend', '.resume') ELSE action END,
    detail = CASE instr(detail, ': ') WHEN 0 THEN '' ELSE substr(detail, instr(detail, ': ') + 2) END
WHERE action IN ('cluster.suspend', 'project.suspend', 'fleet.suspend');
