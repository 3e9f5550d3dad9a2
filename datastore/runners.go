package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// RunnerStore keeps the runners and rules that are in force, and which runner each
// environment is pinned to.
type RunnerStore struct{ *records }

// Runners returns the runners in force, by name. The local one has no record.
func (s *RunnerStore) Runners(ctx context.Context) ([]runnerspec.Record, error) {
	all, err := s.allRunners(ctx, s.db.reader())
	return slices.DeleteFunc(all, func(rec runnerspec.Record) bool { return !rec.RemovedAt.IsZero() }), err
}

// RemovedRunners returns those that were in force and may have left something that they have
// launched, by name.
func (s *RunnerStore) RemovedRunners(ctx context.Context) ([]runnerspec.Record, error) {
	all, err := s.allRunners(ctx, s.db.reader())
	return slices.DeleteFunc(all, func(rec runnerspec.Record) bool { return rec.RemovedAt.IsZero() }), err
}

func (s *RunnerStore) allRunners(ctx context.Context, q querier) ([]runnerspec.Record, error) {
	var found []runnerspec.Record
	err := s.eachDocument(ctx, q, "runner", `SELECT name, doc FROM runners ORDER BY name`, func(read func(into any) error) error {
		var rec runnerspec.Record
		err := read(&rec)
		found = append(found, rec)
		return err
	})
	return found, err
}

// Runner returns the runner in force with a name.
func (s *RunnerStore) Runner(ctx context.Context, name string) (runnerspec.Record, error) {
	rec, err := s.runner(ctx, s.db.reader(), name)
	if err == nil && !rec.RemovedAt.IsZero() {
		return runnerspec.Record{}, notFound(sql.ErrNoRows, "runner", name)
	}
	return rec, err
}

// runner returns the runner with a name, also one that is no longer in force.
func (s *RunnerStore) runner(ctx context.Context, q querier, name string) (runnerspec.Record, error) {
	var rec runnerspec.Record
	var doc []byte
	err := q.row(ctx, `SELECT doc FROM runners WHERE name = ?`, name).Scan(&doc)
	if err := notFound(err, "runner", name); err != nil {
		return rec, err
	}
	return rec, s.unseal(ctx, "runner", name, doc, &rec)
}

// RunnerRules returns the rules, by name.
func (s *RunnerStore) RunnerRules(ctx context.Context) ([]runnerspec.RuleRecord, error) {
	return s.runnerRules(ctx, s.db.reader())
}

func (s *records) runnerRules(ctx context.Context, q querier) ([]runnerspec.RuleRecord, error) {
	var found []runnerspec.RuleRecord
	err := s.eachDocument(ctx, q, "runner rule", `SELECT name, doc FROM runner_rules ORDER BY name`, func(read func(into any) error) error {
		var rec runnerspec.RuleRecord
		err := read(&rec)
		found = append(found, rec)
		return err
	})
	return found, err
}

// eachDocument calls do with what reads each document of a query, which yields names and documents.
func (s *records) eachDocument(ctx context.Context, q querier, kind, query string, do func(read func(into any) error) error) error {
	err := q.each(ctx, func(row scanner) error {
		var name string
		var doc []byte
		if err := row.Scan(&name, &doc); err != nil {
			return err
		}
		return do(func(into any) error { return s.unseal(ctx, kind, name, doc, into) })
	}, query)
	if err != nil {
		return fmt.Errorf("list records of kind %q: %w", kind, err)
	}
	return nil
}

// SaveRunners stores what a repository says of runners and rules, in one transaction, and
// appends to the audit trail. It is an ErrConflict, and nothing is stored, if a name
// belongs to another repository, or a runner that is to go has an environment pinned to it
// or a rule that names it.
func (s *RunnerStore) SaveRunners(ctx context.Context, change runnerspec.Change, trail ...holdfast.AuditEntry) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofRunners); err != nil {
			return err
		}
		for _, rec := range change.Runners {
			if err := s.saveRunner(ctx, q, rec, change.Unwatched); err != nil {
				return err
			}
		}
		for _, name := range change.GoneRules {
			if _, err := q.exec(ctx, `DELETE FROM runner_rules WHERE name = ?`, name); err != nil {
				return err
			}
		}
		for _, rec := range change.Rules {
			if err := s.saveRule(ctx, q, rec, change.Unwatched); err != nil {
				return err
			}
		}
		for _, name := range change.Gone {
			if err := s.removeRunner(ctx, q, name); err != nil {
				return err
			}
		}
		for _, entry := range trail {
			if err := s.audit(ctx, q, entry); err != nil {
				return fmt.Errorf("record %s: %w", entry.Action, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("save runners: %w", err)
	}
	return nil
}

func (s *RunnerStore) saveRunner(ctx context.Context, q querier, rec runnerspec.Record, unwatched []string) error {
	name := rec.Document.Name
	if err := mayHave(ctx, q, `SELECT repo FROM runners WHERE name = ? AND repo <> ''`, name, rec.Place.Repo, unwatched); err != nil {
		return err
	}
	if was, err := s.runner(ctx, q, name); err == nil && !was.RemovedAt.IsZero() {
		rec.Former = was.Leave(rec.Document, was.RemovedAt)
	} else if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return err
	}
	return s.putRunner(ctx, q, rec, rec.Place.Repo)
}

// putRunner stores a runner, whose name belongs to a repository; empty: to nobody.
func (s *RunnerStore) putRunner(ctx context.Context, q querier, rec runnerspec.Record, repo string) error {
	name := rec.Document.Name
	doc, err := s.keys.SealJSON("runner", name, rec)
	if err != nil {
		return err
	}
	_, err = q.exec(ctx, `INSERT INTO runners (name, repo, doc) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET repo = excluded.repo, doc = excluded.doc`, name, repo, doc)
	return err
}

func (s *RunnerStore) saveRule(ctx context.Context, q querier, rec runnerspec.RuleRecord, unwatched []string) error {
	rule := rec.Document
	doc, err := s.keys.SealJSON("runner rule", rule.Name, rec)
	if err != nil {
		return err
	}
	if err := mayHave(ctx, q, `SELECT repo FROM runner_rules WHERE name = ?`, rule.Name, rec.Place.Repo, unwatched); err != nil {
		return err
	}
	_, err = q.exec(ctx, `INSERT INTO runner_rules (name, repo, runner, project, environment, doc) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET repo = excluded.repo, runner = excluded.runner, project = excluded.project,
			environment = excluded.environment, doc = excluded.doc`,
		rule.Name, rec.Place.Repo, rule.Runner, rule.Project, rule.Environment, doc)
	return err
}

// mayHave is an ErrConflict if a name belongs to another repository than repo, which is
// not one of unwatched. The transaction is alone in writing names.
func mayHave(ctx context.Context, q querier, query, name, repo string, unwatched []string) error {
	var owner string
	err := q.row(ctx, query, name).Scan(&owner)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && (owner == repo || slices.Contains(unwatched, owner)):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("name %q belongs to repository %q: %w", name, owner, holdfast.ErrConflict)
}

// removedKept is how long it is known what a runner was that is no longer in force.
const removedKept = 30 * 24 * time.Hour

// removeRunner removes a runner that nothing needs. One that launches something for each run
// stays on record, out of force, for as long as something may be left of that.
func (s *RunnerStore) removeRunner(ctx context.Context, q querier, name string) error {
	var needed int
	err := q.row(ctx, `SELECT (SELECT COUNT(*) FROM environments WHERE runner = ?) + (SELECT COUNT(*) FROM runner_rules WHERE runner = ?)`,
		name, name).Scan(&needed)
	if err == nil && needed > 0 {
		err = fmt.Errorf("runner %q is needed: %w", name, holdfast.ErrConflict)
	}
	if err != nil {
		return err
	}
	all, err := s.allRunners(ctx, q)
	if err != nil {
		return err
	}
	for _, rec := range all {
		goes := rec.Document.Name == name && rec.RemovedAt.IsZero()
		launches := rec.Document.Job != nil || rec.Document.ECS != nil
		switch {
		case goes && launches:
			rec.RemovedAt = s.now()
			err = s.putRunner(ctx, q, rec, "")
		case goes, !rec.RemovedAt.IsZero() && s.now().Sub(rec.RemovedAt) > removedKept:
			_, err = q.exec(ctx, `DELETE FROM runners WHERE name = ?`, rec.Document.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const environmentColumns = `project, name, runner, rule, pinned_at`

func scanEnvironment(row scanner) (env holdfast.Environment, err error) {
	var at int64
	err = row.Scan(&env.Project, &env.Name, &env.Runner, &env.Rule, &at)
	env.PinnedAt = fromNanos(at)
	return env, err
}

// Environments returns the environments that have run, by project and name.
func (s *RunnerStore) Environments(ctx context.Context, filter holdfast.EnvironmentFilter) ([]holdfast.Environment, error) {
	var c conditions
	in(&c, "project", filter.Projects)
	if filter.Runner != "" {
		c.Add(`runner = ?`, filter.Runner)
	}
	var found []holdfast.Environment
	err := s.db.reader().each(ctx, func(row scanner) error {
		env, err := scanEnvironment(row)
		found = append(found, env)
		return err
	}, `SELECT `+environmentColumns+` FROM environments`+c.Where()+` ORDER BY project, name`, c.Args...)
	if err != nil {
		return nil, fmt.Errorf("list environments: %w", err)
	}
	return found, nil
}

// Environment returns an environment that has run.
func (s *RunnerStore) Environment(ctx context.Context, key holdfast.EnvironmentKey) (holdfast.Environment, error) {
	env, err := scanEnvironment(s.db.reader().row(ctx, `SELECT `+environmentColumns+` FROM environments WHERE project = ? AND name = ?`,
		key.Project, key.Name))
	return env, notFound(err, "environment", key.String())
}

// pinned returns the runner of an environment, which stays that until the transaction has
// ended. One that has none yet gets what the rules say now.
func (s *records) pinned(ctx context.Context, q querier, key holdfast.EnvironmentKey) (string, error) {
	if key.Project == "" || key.Name == "" {
		return holdfast.LocalRunner, nil
	}
	read := func() (runner string, err error) {
		err = q.row(ctx, `SELECT runner FROM environments WHERE project = ? AND name = ?`+q.forShare, key.Project, key.Name).Scan(&runner)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			err = fmt.Errorf("read environment %s: %w", key, err)
		}
		return runner, err
	}
	runner, err := read()
	if !errors.Is(err, sql.ErrNoRows) {
		return runner, err
	}
	if err := q.alone(ctx, ofRunners); err != nil {
		return "", err
	}
	if runner, err = read(); !errors.Is(err, sql.ErrNoRows) {
		return runner, err // somebody else has pinned it meanwhile
	}
	env := holdfast.Environment{EnvironmentKey: key, Runner: holdfast.LocalRunner, PinnedAt: s.now()}
	rule, ok, err := s.ruleFor(ctx, q, key)
	if err != nil {
		return "", err
	}
	if ok {
		env.Runner, env.Rule = rule.Runner, rule.Name
	}
	return env.Runner, pin(ctx, q, env)
}

// ruleFor is the rule in force for an environment.
func (s *records) ruleFor(ctx context.Context, q querier, key holdfast.EnvironmentKey) (rule runnerspec.Rule, ok bool, err error) {
	records, err := s.runnerRules(ctx, q)
	if err != nil {
		return rule, false, err
	}
	rules := make([]runnerspec.Rule, len(records))
	for i, rec := range records {
		rules[i] = rec.Document
	}
	rule, ok = runnerspec.RuleFor(rules, key)
	return rule, ok, nil
}

func pin(ctx context.Context, q querier, env holdfast.Environment) error {
	_, err := q.exec(ctx, `INSERT INTO environments (`+environmentColumns+`) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (project, name) DO UPDATE SET runner = excluded.runner, rule = excluded.rule, pinned_at = excluded.pinned_at`,
		env.Project, env.Name, env.Runner, env.Rule, nanos(env.PinnedAt))
	if err != nil {
		return fmt.Errorf("pin environment %s: %w", env.EnvironmentKey, err)
	}
	return nil
}

// RefreshEnvironment pins an environment to what the rules say now, with its runs that
// wait, and returns how it was and how it is; dry says only what would be. One that has no
// cluster left is pinned to nothing: it has no runner then. ErrNotFound: it
// has not run, or no rule matches it. A *holdfast.EnvironmentBusyError if one of its runs
// is running.
func (s *RunnerStore) RefreshEnvironment(
	ctx context.Context, key holdfast.EnvironmentKey, dry bool, trail ...holdfast.AuditEntry,
) (before, after holdfast.Environment, err error) {
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofRunners); err != nil {
			return err
		}
		row := q.row(ctx, `SELECT `+environmentColumns+` FROM environments WHERE project = ? AND name = ?`+q.forUpdate, key.Project, key.Name)
		if before, err = scanEnvironment(row); err != nil {
			return notFound(err, "environment", key.String())
		}
		waiting, err := s.runsOf(ctx, q, key)
		if err != nil {
			return err
		}
		after = before
		if empty, err := deserted(ctx, q, key); err != nil {
			return err
		} else if empty && len(waiting) == 0 {
			after = holdfast.Environment{EnvironmentKey: key}
			return s.unpin(ctx, q, key, dry, trail)
		}
		rule, ok, err := s.ruleFor(ctx, q, key)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("a runner rule for environment %s: %w", key, holdfast.ErrNotFound)
		}
		if after.Runner == rule.Runner && after.Rule == rule.Name {
			return nil
		}
		after.Runner, after.Rule, after.PinnedAt = rule.Runner, rule.Name, s.now()
		if dry {
			return nil
		}
		if err := pin(ctx, q, after); err != nil {
			return err
		}
		for _, run := range waiting {
			run.Runner, run.Version = after.Runner, run.Version+1
			if run.Reason == holdfast.ReasonNoAgent {
				run.Reason, run.Detail = "", "" // of the runner that it was
			}
			if err := s.storeRun(ctx, q, run); err != nil {
				return err
			}
		}
		return s.trail(trail)(ctx, q)
	})
	return before, after, err
}

// deserted reports whether an environment has no cluster left.
func deserted(ctx context.Context, q querier, key holdfast.EnvironmentKey) (bool, error) {
	var some bool
	err := q.row(ctx, `SELECT EXISTS (SELECT 1 FROM summaries WHERE project = ? AND environment = ? AND phase || '' <> ?)`,
		key.Project, key.Name, string(holdfast.PhaseDeleted)).Scan(&some)
	if err != nil {
		return false, fmt.Errorf("look for clusters of environment %s: %w", key, err)
	}
	return !some, nil
}

// unpin has an environment go by the rules again, as if it had never run.
func (s *records) unpin(ctx context.Context, q querier, key holdfast.EnvironmentKey, dry bool, trail []holdfast.AuditEntry) error {
	if dry {
		return nil
	}
	if _, err := q.exec(ctx, `DELETE FROM environments WHERE project = ? AND name = ?`, key.Project, key.Name); err != nil {
		return fmt.Errorf("unpin environment %s: %w", key, err)
	}
	return s.trail(trail)(ctx, q)
}

// runsOf are the runs of an environment that wait; an *holdfast.EnvironmentBusyError if one
// runs. They wait until the transaction has ended.
func (s *records) runsOf(ctx context.Context, q querier, key holdfast.EnvironmentKey) (waiting []holdfast.Run, err error) {
	of := func(suffix string) (runs []holdfast.Run, err error) {
		err = q.each(ctx, func(row scanner) error {
			run, err := s.scanRun(ctx, row)
			if errors.Is(err, holdfast.ErrDamaged) {
				return nil // nobody can claim it
			}
			if run.Document.EnvironmentKey() == key {
				runs = append(runs, run)
			}
			return err
		}, `SELECT `+runColumns+` FROM runs WHERE project = ? AND `+suffix, key.Project)
		return runs, err
	}
	if waiting, err = of(`claim_at IS NOT NULL ORDER BY id` + q.forUpdate); err != nil {
		return nil, err
	}
	running, err := of(`status = 'running' ORDER BY id`)
	if err == nil && len(running) > 0 {
		err = &holdfast.EnvironmentBusyError{Environment: key, Run: running[0].ID, Cluster: running[0].Cluster}
	}
	return waiting, err
}
