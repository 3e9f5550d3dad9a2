package places

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// migration is one while it is prepared.
type migration struct {
	holdfast.StateMigration
	rec  holdfast.ClusterRecord
	to   Place
	code string // the block that says so
}

// Migrate queues the run that moves the state of a cluster to where it is to be, or says what
// it would do. A *holdfast.RefusedError says why that cannot be now; ErrNotFound: there is
// no such cluster.
func (k *Keeper) Migrate(ctx context.Context, ask holdfast.StateMigration) (holdfast.StateMigration, error) {
	newest, err := k.opts.Store.NewestRun(ctx, holdfast.Request{Cluster: ask.Cluster}) // before all else is read
	if err != nil {
		return ask, err
	}
	m := &migration{StateMigration: ask}
	if m.rec, err = k.movable(ctx, ask.Cluster); err != nil {
		return ask, err
	}
	if err := k.target(ctx, m); err != nil {
		return ask, err
	}
	if err := m.refusal(); err != nil || m.DryRun {
		return m.StateMigration, err
	}
	run, err := k.runOf(ctx, m)
	if err != nil {
		return m.StateMigration, err
	}
	entry := holdfast.NewAuditEntry(k.opts.Now(), ask.Actor, "state.migrate", ask.Cluster, fmt.Sprintf("%s: from %s to %s", run.ID, m.From, m.To))
	err = k.opts.Store.CreateRunAfter(ctx, run, newest, entry)
	if errors.Is(err, holdfast.ErrConflict) {
		return m.StateMigration, refused(holdfast.ReasonInProgress, "another run of %s was queued at the same moment: try again", ask.Cluster)
	} else if err != nil {
		return m.StateMigration, fmt.Errorf("queue the migration: %w", err)
	}
	m.Run = run.ID
	k.opts.Logger.WarnContext(ctx, "migration of a state was queued", "cluster", ask.Cluster, "run", run.ID, "from", m.From, "to", m.To, "actor", ask.Actor)
	k.opts.Queued(ctx)
	return m.StateMigration, nil
}

func refused(reason holdfast.Reason, format string, args ...any) error {
	return &holdfast.RefusedError{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// movable returns the record of a cluster that has a state which nothing else is done with.
func (k *Keeper) movable(ctx context.Context, cluster string) (holdfast.ClusterRecord, error) {
	rec, err := k.opts.Store.Cluster(ctx, cluster)
	if err != nil {
		return rec, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	switch {
	case rec.Applied.Run == "" || rec.Deletion != nil:
		return rec, refused(holdfast.ReasonNeverApplied, "nothing is applied of %s: it has no state, and gets its place with the first apply", cluster)
	case rec.Desired.Removed || rec.Desired.Missing != "":
		return rec, refused(holdfast.ReasonMissing, "%s has no document that says where its state is to be", cluster)
	case rec.Desired.SourceDigest == "":
		return rec, refused(holdfast.ReasonInvalid, "the document of %s has faults: fix them first", cluster)
	}
	unsaved, err := k.opts.Store.UnsavedStates(ctx, cluster)
	if err != nil {
		return rec, err
	}
	if len(unsaved) > 0 {
		return rec, refused(holdfast.ReasonStateUnsaved, "run %s could not save its state: push it first", unsaved[0].Run)
	}
	branch, err := history.Branch(ctx, k.opts.Store, cluster)
	if err != nil {
		return rec, err
	}
	if last := decision.LastApplied(rec, branch); last.Run != rec.Applied.Run {
		return rec, refused(holdfast.ReasonApplyFailed, "apply %s of %s has not ended well: finish it first", last.Run, cluster)
	}
	unended, err := k.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster: cluster, Statuses: []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRunning, holdfast.RunRetrying},
	})
	if err != nil {
		return rec, fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	for _, run := range unended {
		if run.Kind.Writes() || run.Status == holdfast.RunRunning {
			return rec, &holdfast.RefusedError{
				Reason: holdfast.ReasonInProgress, Command: "holdfast cancel " + run.ID,
				Text: fmt.Sprintf("%s %s of %s has not ended: wait for it, or cancel it", run.Kind, run.ID, cluster),
			}
		}
	}
	return rec, nil
}

// target finds out where a state is to be, by what the tracked branch and the runners say now.
func (k *Keeper) target(ctx context.Context, m *migration) error {
	cat, err := k.opts.Catalogs.Read(ctx, m.rec.Owner, string(m.rec.Desired.Revision))
	if err != nil {
		return err
	}
	entries := cat.Named(m.Cluster)
	if len(entries) != 1 {
		return refused(holdfast.ReasonMissing, "%s has no document at %s", m.Cluster, m.rec.Desired.Revision.Short())
	}
	root, faults, err := k.opts.Resolver.Resolve(ctx, cat.Tree, entries[0].Doc)
	if err != nil {
		return fmt.Errorf("resolve %q: %w", m.Cluster, err)
	} else if len(faults) > 0 {
		return refused(holdfast.ReasonInvalid, "the document of %s has faults: %s", m.Cluster, faults[0].Error())
	}
	m.to, m.code = Place{Location: root.StateLocation}, root.StateCode()
	if holdfast.OwnState(root.StateLocation) {
		if m.to, err = k.coming(ctx, m.rec, root.StateLocation); err != nil {
			return err
		}
		if m.to.Stored != nil {
			m.code = templates.BackendCode(m.to.Stored.Backend())
		}
	}
	m.From, m.To = m.rec.Applied.StateLocation, m.to.Location
	return nil
}

// coming is where a migration brings a state of which neither code nor document say where it
// is to be.
func (k *Keeper) coming(ctx context.Context, rec holdfast.ClusterRecord, resolved string) (Place, error) {
	runners, err := k.opts.Store.Runners(ctx)
	if err != nil {
		return Place{}, fmt.Errorf("list runners: %w", err)
	}
	choice, err := k.choose(ctx, runners, rec.Desired.Document.EnvironmentKey())
	if err != nil {
		return Place{}, err
	}
	fixed := holdfast.StatePlace{Location: rec.Applied.StateLocation, Stored: rec.Applied.Stored}
	if next := choice.next(); ByRunner(fixed) && fixed.Stored.In(next.storage) {
		return next.keep(fixed, resolved), nil
	}
	return k.fresh(ctx, rec.Desired.Document, choice.next(), resolved)
}

// refusal is why a state cannot be moved to where it is to be.
func (m *migration) refusal() error {
	was, is := location.PlaceOf(m.From, m.rec.Applied.Document), location.PlaceOf(m.To, m.rec.Desired.Document)
	switch {
	case !location.Other(was, is):
		return refused(holdfast.ReasonUpToDate, "the state of %s is at %s, where it is to be", m.Cluster, m.From)
	case m.code == "":
		return refused(holdfast.ReasonStateWouldMove, "the code of %s says in JSON where its state is to be: write that block in HCL", m.Cluster)
	case was.Scope != is.Scope && (location.Ambient(m.From) || location.Ambient(m.To)) && !m.Copied:
		return refused(holdfast.ReasonStateWouldMove, "%s; credentials say which store that is, and no run has both: "+
			"copy the state, then run: holdfast state migrate %s --copied", decision.MoveText(decision.StateNames(m.rec.Applied, m.To, m.rec.Desired.Document)), m.Cluster)
	case holdfast.OwnState(m.To) && m.Copied:
		return refused(holdfast.ReasonStateWouldMove, "nobody but a run can copy a state to Holdfast's own backend: leave out --copied")
	}
	return nil
}

// runOf is the run that moves the state: with the root module that was applied last, whose
// plan has no changes before and after, and the credentials of applies.
func (k *Keeper) runOf(ctx context.Context, m *migration) (holdfast.Run, error) {
	last := m.rec.Applied
	bundle, err := k.opts.Store.Bundle(ctx, last.Bundle)
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("read what was applied last: %w", err)
	}
	defer bundle.Close()
	data, digest, err := templates.Rebundle(bundle, last.Dir, m.code)
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("make the root module at its new place: %w", err)
	}
	if err := k.opts.Store.PutBundle(ctx, digest, data); err != nil {
		return holdfast.Run{}, fmt.Errorf("store bundle: %w", err)
	}
	now := k.opts.Now()
	run := holdfast.Run{
		ID: holdfast.NewID("run", now), Cluster: m.Cluster, Kind: holdfast.RunState, Status: holdfast.RunQueued,
		Reason: holdfast.ReasonStateWouldMove, CreatedAt: now,
		RunSpec: holdfast.RunSpec{
			Repo: m.rec.Owner, Revision: last.Revision, SourceDigest: last.SourceDigest, Bundle: digest, Dir: last.Dir,
			Document: last.Document, StateLocation: m.From, Template: last.Template, OutputRoles: last.OutputRoles, Actor: m.Actor,
			State: &holdfast.StateJob{
				Action: holdfast.StateMigrate, From: last.Run, EngineName: last.EngineName, EngineVersion: last.EngineVersion,
				Move: &holdfast.StateMove{From: m.From, To: m.To, Stored: m.to.Stored, Copied: m.Copied},
			},
		},
	}
	if holdfast.OwnState(m.To) { // an agent speaks to that in the name of its run
		run.StateLocation = m.To
	}
	if m.Copied { // they say which state it is
		run.Document.Project, run.Document.Environment = m.rec.Desired.Document.Project, m.rec.Desired.Document.Environment
	}
	return run, nil
}
