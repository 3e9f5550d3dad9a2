package datastore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

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
		Applied: holdfast.AppliedLine{Revision: c.Applied.Revision}, UpdatedAt: c.UpdatedAt,
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

// templateName is what document is made from, if that is a template with a name.
func templateName(document holdfast.Cluster) string {
	if document.Template == nil {
		return ""
	}
	return document.Template.Name
}

// keptFor are the runs that c's record refers to.
func keptFor(c holdfast.ClusterRecord) []string {
	runs := []string{c.Applied.Run, c.Applied.OutputsRun, c.Drift.Run, c.Drift.Applied, c.Drift.Revert}
	if c.Deletion != nil {
		runs = append(runs, c.Deletion.Run)
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

// indexed is what clusters are selected by.
type indexed struct {
	owner, revision, project, environment, phase, waiting, drift, template string
	checkedAt, driftDue                                                    int64
	appliedRun, appliedBundle                                              string
	appliedAt                                                              int64
	labels, parents, keeps                                                 string // lists
}

func indexedOf(c holdfast.ClusterRecord, l holdfast.ClusterSummary) (indexed, error) {
	labels, err := json.Marshal(l.Labels)
	if err != nil {
		return indexed{}, fmt.Errorf("encode labels: %w", err)
	}
	return indexed{
		owner: l.Owner, revision: string(c.Desired.Revision), project: l.Project, environment: l.Environment, phase: string(l.Phase), waiting: string(l.Waiting), drift: string(l.Drift),
		template:  templateName(describing(c)),
		checkedAt: nanos(l.CheckedAt), driftDue: nanos(l.DriftDue),
		appliedRun: c.Applied.Run, appliedBundle: string(c.Applied.Bundle), appliedAt: nanos(c.Applied.At),
		labels: string(labels), parents: encodeList(c.Parents()), keeps: encodeList(keptFor(c)),
	}, nil
}

// storeSummary writes what is known of c without decrypting its record. Most
// writes change nothing that clusters are selected by: they touch no index.
func storeSummary(ctx context.Context, q querier, c holdfast.ClusterRecord) error {
	l := summaryOf(c)
	next, err := indexedOf(c, l)
	if err != nil {
		return err
	}
	var old indexed
	err = q.row(ctx, `SELECT owner, revision, project, environment, phase, waiting, drift, checked_at, drift_due,
			applied_run, applied_bundle, applied_at, labels, parents, keeps, template FROM summaries WHERE name = ?`, c.Name).
		Scan(&old.owner, &old.revision, &old.project, &old.environment, &old.phase, &old.waiting, &old.drift, &old.checkedAt, &old.driftDue,
			&old.appliedRun, &old.appliedBundle, &old.appliedAt, &old.labels, &old.parents, &old.keeps, &old.template)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("read summary: %w", err)
	case err == nil && old == next:
		_, err = q.exec(ctx, `UPDATE summaries SET line = ? WHERE name = ?`, encodeLine(l), c.Name)
	default:
		_, err = q.exec(ctx, `INSERT INTO summaries (name, line, owner, revision, project, environment, phase, waiting, drift, checked_at, drift_due,
				applied_run, applied_bundle, applied_at, labels, parents, keeps, template)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET line = excluded.line, owner = excluded.owner, revision = excluded.revision,
				project = excluded.project, environment = excluded.environment, phase = excluded.phase, waiting = excluded.waiting, drift = excluded.drift,
				checked_at = excluded.checked_at, drift_due = excluded.drift_due, applied_run = excluded.applied_run,
				applied_bundle = excluded.applied_bundle, applied_at = excluded.applied_at, labels = excluded.labels,
				parents = excluded.parents, keeps = excluded.keeps, template = excluded.template`,
			c.Name, encodeLine(l), next.owner, next.revision, next.project, next.environment, next.phase, next.waiting, next.drift,
			next.checkedAt, next.driftDue, next.appliedRun, next.appliedBundle, next.appliedAt, next.labels, next.parents, next.keeps, next.template)
	}
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	if old.labels != next.labels {
		if err := replaceLabels(ctx, q, c.Name, l.Labels); err != nil {
			return fmt.Errorf("write labels: %w", err)
		}
	}
	if old.parents != next.parents {
		if err := replaceList(ctx, q, `cluster_dependencies`, `cluster`, `parent`, c.Name, c.Parents()); err != nil {
			return fmt.Errorf("write dependencies: %w", err)
		}
	}
	if old.keeps != next.keeps {
		if err := holdRuns(ctx, q, keptFor(c)); err != nil {
			return err
		}
		if err := replaceList(ctx, q, `run_references`, `holder`, `run`, "cluster:"+c.Name, keptFor(c)); err != nil {
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

// ClusterSummaries returns a line for each cluster that matches, by name. It decrypts nothing.
func (s *ClusterStore) ClusterSummaries(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterSummary, error) {
	var found []holdfast.ClusterSummary
	for c := range selections(filter) {
		err := s.db.reader().each(ctx, func(row scanner) error {
			var line string
			if err := row.Scan(&line); err != nil {
				return err
			}
			l, err := decodeLine(line)
			found = append(found, l)
			return err
		}, `SELECT line FROM summaries AS l`+c.Where()+` ORDER BY l.name`+limited(filter, len(found)), c.Args...)
		if err != nil {
			return nil, fmt.Errorf("list clusters: %w", err)
		}
		if filter.Limit > 0 && len(found) >= filter.Limit {
			break
		}
	}
	return found, nil
}

// A line is the fields of a summary with a separator between each, which no
// field contains. Lists of ten thousand are read from it: decoding JSON, or
// scanning as many columns, takes several times as long.
const (
	fieldSeparator = "\x1f"
	labelSeparator = "\x1e"
	lineFields     = 16
)

// plain keeps the separators, which nobody means to write, out of a field.
var plain = strings.NewReplacer(fieldSeparator, " ", labelSeparator, " ")

func encodeLine(l holdfast.ClusterSummary) string {
	var flags, counts string
	for _, flag := range []struct {
		letter string
		set    bool
	}{{"s", l.Suspended}, {"i", l.Invalid}, {"r", l.Removed}, {"u", l.UpToDate}} {
		if flag.set {
			flags += flag.letter
		}
	}
	if n := l.DriftCounts; n != (holdfast.DriftCounts{}) {
		counts = fmt.Sprint(n.Changed, n.Gone, n.Input, n.Harmless, n.Ignored)
	}
	fields := []string{
		l.Name, l.Owner, l.Project, l.Environment, l.Provider, l.Template, string(l.Phase), string(l.Waiting), flags, string(l.Drift), counts,
		encodeTime(l.CheckedAt), encodeTime(l.DriftDue), string(l.Applied.Revision), encodeTime(l.UpdatedAt),
	}
	for i := range fields {
		fields[i] = plain.Replace(fields[i])
	}
	var labels []string
	for _, label := range slices.Sorted(maps.Keys(l.Labels)) {
		labels = append(labels, plain.Replace(label), plain.Replace(l.Labels[label]))
	}
	return strings.Join(append(fields, strings.Join(labels, labelSeparator)), fieldSeparator)
}

func decodeLine(line string) (holdfast.ClusterSummary, error) {
	var fields [lineFields]string
	n := 0
	for field := range strings.SplitSeq(line, fieldSeparator) {
		if n < lineFields {
			fields[n] = field
		}
		n++
	}
	if n != lineFields {
		return holdfast.ClusterSummary{}, fmt.Errorf("decode summary of %q: it has %d fields, want %d", fields[0], n, lineFields)
	}
	flags := fields[8]
	l := holdfast.ClusterSummary{
		Name: fields[0], Owner: fields[1], Project: fields[2], Environment: fields[3], Provider: fields[4], Template: fields[5],
		Phase: holdfast.Phase(fields[6]), Waiting: holdfast.Reason(fields[7]),
		Suspended: strings.Contains(flags, "s"), Invalid: strings.Contains(flags, "i"),
		Removed: strings.Contains(flags, "r"), UpToDate: strings.Contains(flags, "u"),
		Drift: holdfast.DriftStatus(fields[9]), Applied: holdfast.AppliedLine{Revision: holdfast.Revision(fields[13])},
		CheckedAt: decodeTime(fields[11]), DriftDue: decodeTime(fields[12]), UpdatedAt: decodeTime(fields[14]),
	}
	counts := []*int{&l.DriftCounts.Changed, &l.DriftCounts.Gone, &l.DriftCounts.Input, &l.DriftCounts.Harmless, &l.DriftCounts.Ignored}
	for _, count := range counts {
		number, rest, _ := strings.Cut(fields[10], " ")
		*count, _ = strconv.Atoi(number)
		fields[10] = rest
	}
	for rest, more := fields[15], fields[15] != ""; more; {
		var label, value string
		label, rest, _ = strings.Cut(rest, labelSeparator)
		value, rest, more = strings.Cut(rest, labelSeparator)
		if l.Labels == nil {
			l.Labels = map[string]string{}
		}
		l.Labels[label] = value
	}
	return l, nil
}

func encodeTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(nanos(t), 36)
}

func decodeTime(text string) time.Time {
	n, _ := strconv.ParseInt(text, 36, 64) // empty is zero
	return fromNanos(n)
}
