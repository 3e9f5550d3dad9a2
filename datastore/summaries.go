package datastore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// describing is the document that says what a cluster is: the desired one, or
// the last applied one of a cluster whose desired one is gone or at fault.
func describing(c holdfast.ClusterRecord) holdfast.Cluster {
	if c.Desired.Document.Name == "" && c.Applied.Document.Name != "" {
		return c.Applied.Document
	}
	return c.Desired.Document
}

// summaryOf is what a list shows of a record.
func summaryOf(c holdfast.ClusterRecord) holdfast.ClusterSummary {
	document := describing(c)
	return holdfast.ClusterSummary{
		Name: c.Name, Owner: c.Owner, Project: document.Project, Environment: document.Environment,
		Provider: document.Provider, Labels: document.Labels, Template: templateOf(document),
		Phase: c.Phase, Waiting: c.Waiting, Suspended: c.Suspended,
		Invalid: len(c.Desired.Faults) > 0, Removed: c.Desired.Removed,
		UpToDate: !c.Desired.Removed && c.Desired.SourceDigest.Equal(c.Applied.SourceDigest),
		Drift:    c.Drift.Status, DriftCounts: c.Drift.Counts, CheckedAt: c.Drift.CheckedAt, DriftDue: c.Drift.Due,
		Applied: c.Applied.Revision, UpdatedAt: c.UpdatedAt,
	}
}

func templateOf(document holdfast.Cluster) string {
	switch t := document.Template; {
	case t == nil:
		return ""
	case t.Path != "":
		return t.Path
	default:
		return t.Name + "@" + t.Version
	}
}

// parentsOf are the clusters that c depends on, by what is desired or applied.
func parentsOf(c holdfast.ClusterRecord) []string {
	parents := slices.Concat(c.Desired.Document.DependsOn, c.Applied.Document.DependsOn)
	slices.Sort(parents)
	return slices.Compact(parents)
}

// keptFor are the runs that c's record speaks of.
func keptFor(c holdfast.ClusterRecord) []string {
	runs := []string{c.Applied.Run, c.Drift.Run, c.Drift.Applied, c.Drift.Remedy}
	if c.Ending != nil {
		runs = append(runs, c.Ending.Run)
	}
	return distinct(runs)
}

// distinct sorts names and removes empty ones and doubles.
func distinct(names []string) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 0 && names[0] == "" {
		return names[1:]
	}
	return names
}

// storeSummary writes what is known of c without decrypting its record.
func storeSummary(ctx context.Context, q querier, c holdfast.ClusterRecord) error {
	l := summaryOf(c)
	labels, err := json.Marshal(l.Labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	counts, err := encodeCounts(l.DriftCounts)
	if err != nil {
		return err
	}
	parents, keeps := parentsOf(c), keptFor(c)
	var old struct{ labels, parents, keeps string }
	err = q.row(ctx, `SELECT labels, parents, keeps FROM summaries WHERE name = ?`, c.Name).Scan(&old.labels, &old.parents, &old.keeps)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read summary: %w", err)
	}
	_, err = q.exec(ctx, `INSERT INTO summaries (name, owner, project, environment, provider, labels, template, phase, waiting,
			suspended, invalid, removed, up_to_date, drift, drift_counts, checked_at, drift_due, applied_revision, updated_at,
			applied_run, applied_bundle, applied_at, parents, keeps)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, project = excluded.project, environment = excluded.environment,
			provider = excluded.provider, labels = excluded.labels, template = excluded.template, phase = excluded.phase,
			waiting = excluded.waiting, suspended = excluded.suspended, invalid = excluded.invalid, removed = excluded.removed,
			up_to_date = excluded.up_to_date, drift = excluded.drift, drift_counts = excluded.drift_counts,
			checked_at = excluded.checked_at, drift_due = excluded.drift_due, applied_revision = excluded.applied_revision,
			updated_at = excluded.updated_at, applied_run = excluded.applied_run, applied_bundle = excluded.applied_bundle,
			applied_at = excluded.applied_at, parents = excluded.parents, keeps = excluded.keeps`,
		l.Name, l.Owner, l.Project, l.Environment, l.Provider, string(labels), l.Template, string(l.Phase), l.Waiting,
		boolInt(l.Suspended), boolInt(l.Invalid), boolInt(l.Removed), boolInt(l.UpToDate), string(l.Drift), counts,
		nanos(l.CheckedAt), nanos(l.DriftDue), string(l.Applied), nanos(l.UpdatedAt),
		c.Applied.Run, string(c.Applied.Bundle), nanos(c.Applied.At), encodeList(parents), encodeList(keeps))
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	if old.labels != string(labels) {
		if err := replaceLabels(ctx, q, c.Name, l.Labels); err != nil {
			return fmt.Errorf("write labels: %w", err)
		}
	}
	if old.parents != encodeList(parents) {
		if err := replaceList(ctx, q, `cluster_dependencies`, `cluster`, `parent`, c.Name, parents); err != nil {
			return fmt.Errorf("write dependencies: %w", err)
		}
	}
	if old.keeps != encodeList(keeps) {
		if err := replaceList(ctx, q, `run_references`, `holder`, `run`, "cluster:"+c.Name, keeps); err != nil {
			return fmt.Errorf("write references: %w", err)
		}
	}
	return nil
}

func replaceLabels(ctx context.Context, q querier, cluster string, labels map[string]string) error {
	if _, err := q.exec(ctx, `DELETE FROM cluster_labels WHERE cluster = ?`, cluster); err != nil {
		return err
	}
	for label, value := range labels {
		if _, err := q.exec(ctx, `INSERT INTO cluster_labels (label, value, cluster) VALUES (?, ?, ?)`, label, value, cluster); err != nil {
			return err
		}
	}
	return nil
}

// replaceList makes values all that table has of owner. The names of table and
// columns are constants.
func replaceList(ctx context.Context, q querier, table, ownerColumn, valueColumn, owner string, values []string) error {
	if _, err := q.exec(ctx, `DELETE FROM `+table+` WHERE `+ownerColumn+` = ?`, owner); err != nil {
		return err
	}
	for _, value := range values {
		if _, err := q.exec(ctx, `INSERT INTO `+table+` (`+ownerColumn+`, `+valueColumn+`) VALUES (?, ?)`, owner, value); err != nil {
			return err
		}
	}
	return nil
}

func encodeCounts(counts holdfast.DriftCounts) (string, error) {
	if counts == (holdfast.DriftCounts{}) {
		return "", nil
	}
	data, err := json.Marshal(counts)
	return string(data), err
}

// ClusterSummaries returns a line for each cluster that matches, by name. It
// decrypts nothing.
func (s *Store) ClusterSummaries(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterSummary, error) {
	var found []holdfast.ClusterSummary
	for c := range selections(filter) {
		err := s.db.reader().each(ctx, func(row scanner) error {
			l, err := scanSummary(row)
			found = append(found, l)
			return err
		}, `SELECT name, owner, project, environment, provider, labels, template, phase, waiting, suspended, invalid, removed,
			up_to_date, drift, drift_counts, checked_at, drift_due, applied_revision, updated_at
			FROM summaries AS l`+c.where()+` ORDER BY l.name`, c.args...)
		if err != nil {
			return nil, fmt.Errorf("list clusters: %w", err)
		}
	}
	return found, nil
}

func scanSummary(row scanner) (holdfast.ClusterSummary, error) {
	var l holdfast.ClusterSummary
	var labels, counts sql.RawBytes
	var checkedAt, driftDue, updatedAt int64
	if err := row.Scan(&l.Name, &l.Owner, &l.Project, &l.Environment, &l.Provider, &labels, &l.Template, &l.Phase, &l.Waiting,
		&l.Suspended, &l.Invalid, &l.Removed, &l.UpToDate, &l.Drift, &counts, &checkedAt, &driftDue, &l.Applied, &updatedAt); err != nil {
		return l, err
	}
	l.CheckedAt, l.DriftDue, l.UpdatedAt = fromNanos(checkedAt), fromNanos(driftDue), fromNanos(updatedAt)
	if err := json.Unmarshal(labels, &l.Labels); err != nil {
		return l, fmt.Errorf("decode labels of %q: %w", l.Name, err)
	}
	if len(counts) > 0 {
		if err := json.Unmarshal(counts, &l.DriftCounts); err != nil {
			return l, fmt.Errorf("decode drift counts of %q: %w", l.Name, err)
		}
	}
	return l, nil
}
