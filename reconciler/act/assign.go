package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// starter tells attempts what they start from.
type starter struct{ shared }

// assignment records on a run what its attempt starts from, and returns
// what the attempt needs to know of it.
func (s *starter) assignment(ctx context.Context, run holdfast.Run) (protocol.Assignment, holdfast.Run, error) {
	rec, err := s.opts.Store.Cluster(ctx, run.Cluster)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return protocol.Assignment{}, run, fmt.Errorf("read cluster %q: %w", run.Cluster, err)
	}
	branch, err := history.Branch(ctx, s.opts.Store, run.Cluster)
	if err != nil {
		return protocol.Assignment{}, run, err
	}
	former, err := s.Lineage.Former(ctx, run.Repo, rec, run.Document)
	if err != nil {
		return protocol.Assignment{}, run, err
	}
	left, err := history.Left(ctx, s.opts.Store, rec, branch)
	if err != nil {
		return protocol.Assignment{}, run, err
	}
	last := decision.LastBegun(branch)
	if former.Name != "" && !run.Destroys() {
		rec.StateSerial = former.StateSerial // it is planned with the state that the former name has
		left, last = former.Left, former.Applied.Run
	}
	policies, waivers, err := s.judgedBy(ctx, run, decision.LastApplied(rec, branch), former, rec)
	if err != nil {
		return protocol.Assignment{}, run, err
	}
	given := holdfast.Digest("")
	if policies != nil {
		given = policies.Set
	}
	for run.AppliedRun != last || run.StateSerial != rec.StateSerial || run.PoliciesGiven != given || !slices.Equal(run.PolicyWaivers, waivers) {
		seen := run
		seen.AppliedRun, seen.StateSerial, seen.PoliciesGiven, seen.PolicyWaivers = last, rec.StateSerial, given, waivers
		seen, err = s.opts.Store.UpdateRun(ctx, seen)
		if errors.Is(err, holdfast.ErrConflict) { // it was canceled just now
			seen, err = s.opts.Store.Run(ctx, run.ID)
		}
		if err != nil {
			return protocol.Assignment{}, run, fmt.Errorf("record run %s: %w", run.ID, err)
		}
		run = seen
	}
	credentials, err := s.opts.Grants.Credentials(run.Document, run.Kind)
	if err != nil {
		return protocol.Assignment{}, run, fmt.Errorf("read credentials: %w", err)
	}
	referenced, err := s.referenced(ctx, run, credentials.Missing)
	if err != nil {
		return protocol.Assignment{}, run, err
	}
	pin, wrote := pinned(run, rec, former, branch)
	inSlot := s.opts.Settings.Lock.InSlot()
	a := protocol.Assignment{
		Kind: run.Kind, Cluster: run.Cluster,
		Bundle: run.Bundle, Dir: run.Dir, SourceDigest: run.SourceDigest,
		Destroy:         run.Destroy,
		AssignedReviews: protocol.AssignedReviews{Reviews: decision.ComparedWith(run), Policies: policies},
		FingerprintKey:  s.opts.Settings.FingerprintKey, TraceParent: run.TraceParent,
		EngineChoice: protocol.EngineChoice{
			Engine: run.Document.Engine, PinName: wrote.EngineName, PinVersion: wrote.EngineVersion,
			Exact: (run.Exact || run.State != nil && run.State.EngineVersion != "") && wrote.EngineVersion != "",
		},
		AssignedEnv: protocol.AssignedEnv{
			Env: credentials.Env, Secrets: credentials.Secrets, Missing: credentials.Missing, Referenced: referenced,
			Identities: credentials.Identities,
		},
		AssignedState: protocol.AssignedState{
			State: run.State, LockTimeout: &inSlot,
			OwnState: holdfast.OwnState(run.StateLocation), StateLocation: run.StateLocation,
		},
	}
	a.Limits = s.opts.Grants.Limits(run.Document)
	a.SecretDirs, a.SecretStores = s.opts.Grants.SecretSources(run.Document, run.Kind)
	if run.Exact {
		a.Modules = pin.Run
	}
	a.AssignedResume = resumed(run, left)
	a.LockFile, err = s.lockFile(ctx, run, pin)
	return a, run, err
}

// resumed is what a run has to know of the applies that have died before it. A plan says
// what it would create again. An apply whose plan was shown to whoever asked for it may.
func resumed(run holdfast.Run, left holdfast.Leftover) protocol.AssignedResume {
	out := protocol.AssignedResume{Resume: run.Resume}
	plans := run.Kind == holdfast.RunPlan && !run.Destroys() && !run.Sample
	if plans || run.Kind == holdfast.RunApply && !decision.MayCreate(run) {
		out.MayExist, out.AnyMayExist = left.Addresses, left.Any
	}
	return out
}

// referenced returns those of the credentials without a value that secret variables of
// clusters refer to, which get them from where the run's cluster does: whatever their
// project is. One that nobody refers to may be a provider's: the engine might need it.
func (s *starter) referenced(ctx context.Context, run holdfast.Run, missing []string) ([]string, error) {
	if len(missing) == 0 {
		return nil, nil
	}
	var names []string
	err := byname.Each(ctx, s.opts.Store, holdfast.ClusterFilter{}, func(rec holdfast.ClusterRecord) (enough bool) {
		for _, name := range missing {
			if rec.Deletion == nil && slices.Contains(rec.Desired.SecretEnv, name) && !slices.Contains(names, name) &&
				s.opts.Grants.SameCredential(name, run.Kind, run.Document, rec.Desired.Document) {
				names = append(names, name)
			}
		}
		return len(names) == len(missing)
	})
	if err != nil {
		return nil, fmt.Errorf("look for what clusters refer to: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(missing), func(name string) bool { return !slices.Contains(names, name) }), nil
}

// pinned is what a run takes its provider lock file from: what was last applied, under
// the cluster's former name if it has none under its own; and what it takes its engine
// from: the same, or the apply after it that did not end well, as that has written the
// state last. Branch are the newest runs of the cluster's tracked branch.
func pinned(run holdfast.Run, rec, former holdfast.ClusterRecord, branch []holdfast.Run) (pin, wrote holdfast.Applied) {
	if job := run.State; job != nil {
		pin = holdfast.Applied{Run: job.From, EngineName: job.EngineName, EngineVersion: job.EngineVersion}
		if pin.EngineVersion == "" { // it died before it could say
			pin.EngineName, pin.EngineVersion = rec.Applied.EngineName, rec.Applied.EngineVersion
		}
		return pin, pin
	}
	if former.Name != "" && !run.Destroys() {
		return former.Applied, former.Applied
	}
	if run.Exact && !run.Destroys() { // it looks for drift from what was applied
		return rec.Applied, rec.Applied
	}
	wrote = decision.LastApplied(rec, branch)
	if run.Destroys() {
		return wrote, wrote
	}
	return rec.Applied, wrote
}

// lockFile returns the provider lock file that a run starts from: that of the plan that
// it should repeat, otherwise that of the last apply.
func (s *starter) lockFile(ctx context.Context, run holdfast.Run, pin holdfast.Applied) ([]byte, error) {
	from := []string{run.Shown}
	for _, review := range run.Reviews {
		from = append(from, review.Run)
	}
	for _, id := range append(from, pin.Run) {
		if id == "" {
			continue
		}
		file, err := history.Artefact(ctx, s.opts.Store, id, protocol.ArtefactLockFile)
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		}
		return file, err
	}
	return nil, nil
}
