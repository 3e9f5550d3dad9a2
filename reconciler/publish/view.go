package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cost"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/rollout"
)

// view gathers what a pull request's comment shows, and whether it stays the same until
// somebody acts.
func (v *viewer) view(ctx context.Context, pr holdfast.PullRequestRecord) (report.PullRequest, bool, error) {
	view := report.PullRequest{PullRequest: pr, Now: v.opts.Settings.Now(), LogURL: v.opts.Settings.LogURL, AddCosts: cost.Sum}
	if link := v.opts.Settings.PullRequestURL; link != nil {
		view.URL = link(pr.PullRequestRef)
	}
	settled, look := true, v.plans.look()
	for _, c := range pr.Clusters {
		rc := report.Cluster{Name: c.Name, Document: c.Document, Removed: c.Removed, Added: c.Added, Sample: c.Sample}
		own, err := v.viewRelated(ctx, &rc, pr, c)
		if err != nil {
			return view, false, err
		}
		plans, err := history.PullRequest(ctx, v.opts.Store, pr.PullRequestRef, c.Name)
		if err != nil {
			return view, false, err
		}
		if pr.State == holdfast.PullRequestMerged {
			plans = reviewable(pr, plans)
		}
		if err := v.viewPlan(ctx, look, &rc, plans); err != nil {
			return view, false, err
		}
		if own != nil {
			rc.Gates = gatesOf(pr, c.Name, c.Document, own.last, decision.Newest(plans), plans, view.Now)
		}
		if why := v.replanned(ctx, pr, plans); why != "" {
			view.Notices = append(view.Notices, "planned again: "+why)
		}
		if pr.State == holdfast.PullRequestMerged && !c.Sample {
			if err := v.viewApply(ctx, look, &rc, pr, c); err != nil {
				return view, false, err
			}
		} else if rc.Plan != nil { // without one there is nothing to compare with
			if err := v.viewEngine(ctx, &rc, pr, own); err != nil {
				return view, false, err
			}
		}
		rc.Waived = waivedIn(pr, rc, plans, view.Now)
		settled = settled && settledCluster(pr, c, rc)
		view.Clusters = append(view.Clusters, rc)
	}
	var err error
	view.Impacts, err = v.viewImpacts(ctx, pr)
	return view, settled, err
}

// waivedIn are the policies that do not count for the plan of a cluster that is shown.
func waivedIn(pr holdfast.PullRequestRecord, rc report.Cluster, plans []holdfast.Run, now time.Time) []string {
	if plan := rc.Planned(); plan != nil {
		return gate.WaivedIn(pr, rc.Name, *plan, plans, now)
	}
	return nil
}

// viewImpacts shows what changes of templates would do; their samples are among
// the pull request's clusters.
func (v *viewer) viewImpacts(ctx context.Context, pr holdfast.PullRequestRecord) ([]report.Impact, error) {
	if !v.opts.Repositories[pr.Repo] {
		return nil, nil
	}
	impacts, err := v.opts.Store.Impacts(ctx, pr.PullRequestRef)
	if err != nil {
		return nil, fmt.Errorf("read impact of %s: %w", pr.PullRequestRef, err)
	}
	sample, own := make(map[string]bool), make(map[string]bool)
	for _, c := range pr.Clusters {
		sample[c.Name], own[c.Name] = c.Sample, true
	}
	var out []report.Impact
	for _, impact := range impacts {
		shown := report.Impact{Impact: impact, All: true}
		for _, g := range impact.Groups {
			n := 0
			for _, c := range g.Clusters {
				if sample[c.Name] || own[c.Name] && c.Reach == rollout.ReachMerge {
					n++
				}
			}
			if n == 0 {
				shown.Over += len(g.Clusters)
			}
			shown.All = shown.All && n == len(g.Clusters)
		}
		out = append(out, shown)
	}
	return out, nil
}

// replanned says why the newest plan has replaced another one of the same head;
// empty if it has not, or because somebody asked for it.
func (v *viewer) replanned(ctx context.Context, pr holdfast.PullRequestRecord, plans []holdfast.Run) string {
	if pr.State != holdfast.PullRequestOpen || len(plans) == 0 {
		return ""
	}
	now := plans[0]
	if now.Attempt == 0 && now.Reason == holdfast.ReasonAppliedSince {
		return now.Detail
	}
	i := slices.IndexFunc(plans[1:], func(run holdfast.Run) bool {
		return run.Revision == now.Revision && run.Status.Good()
	})
	if i < 0 || now.Attempt == 0 {
		return ""
	}
	switch before := plans[1+i]; {
	case now.AppliedRun != before.AppliedRun && now.AppliedRun != "":
		return v.explainApply(ctx, now.AppliedRun)
	case !now.SourceDigest.Equal(before.SourceDigest):
		return fmt.Sprintf("%s has changed on %s since", now.Cluster, pr.BaseBranch)
	case now.StateSerial != before.StateSerial:
		return fmt.Sprintf("the state of %s has changed since", now.Cluster)
	default:
		return ""
	}
}

// explainApply says whose apply made a plan stale; empty if it is no longer known.
func (v *viewer) explainApply(ctx context.Context, id string) string {
	apply, err := v.opts.Store.Run(ctx, id)
	if err != nil {
		return ""
	}
	return report.AppliedBy(apply)
}

// settledCluster reports whether what is shown of a cluster will not soon change
// automatically.
func settledCluster(pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster, rc report.Cluster) bool {
	retrying := func(run *holdfast.Run) bool { return run.Status == holdfast.RunRetrying }
	ended := func(run *holdfast.Run) bool { return run != nil && (run.Status.Done() || retrying(run)) }
	switch {
	case pr.State == holdfast.PullRequestMerged && rc.Sample:
		return true
	case pr.State == holdfast.PullRequestMerged:
		return ended(rc.Apply) || rc.Waiting != "" || rc.Superseded != ""
	case pr.Reason != "" || !c.Removed && c.SourceDigest == "" || slices.Contains(unplannable, rc.Waiting):
		return true
	default:
		return ended(rc.Plan) && !rc.Previous
	}
}

// unplannable are the reasons why nothing is planned of a cluster, or not its
// destruction.
var unplannable = []holdfast.Reason{holdfast.ReasonProtected, holdfast.ReasonNeverApplied, holdfast.ReasonStateUnsaved, holdfast.ReasonStateWouldMove} //nolint:gochecknoglobals // a constant list

// onRecord is what is on record of a cluster.
type onRecord struct {
	cluster holdfast.ClusterRecord // without a name: there is none
	branch  []holdfast.Run         // the newest of its tracked branch
	last    []holdfast.Applied     // what was last applied of it, and begun, and merges that wait
}

// viewRelated says of a cluster that a pull request removes why it would not be
// destroyed, and of another one what it has to wait for. It returns what it has read for
// that; nil if nothing is waited for.
func (v *viewer) viewRelated(
	ctx context.Context, rc *report.Cluster, pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster,
) (*onRecord, error) {
	if pr.State != holdfast.PullRequestOpen || rc.Sample {
		return nil, nil
	}
	in, branch, err := v.opts.Fleet.Foresee(ctx, pr, c)
	if err != nil {
		return nil, err
	}
	own := &onRecord{cluster: in.Cluster, branch: branch, last: in.Binding()}
	rc.Document.Apply.Manual = slices.ContainsFunc(decision.Conditions(c.Document, own.last...), func(s holdfast.ApplySettings) bool { return s.Manual })
	if in.Unsaved != nil {
		rc.Waiting, rc.WaitingDetail = holdfast.ReasonStateUnsaved, in.Unsaved.Detail
		return own, nil
	}
	if !rc.Removed {
		if in.Cluster.Applied.Run != "" || in.Last.Run == "" {
			rc.Document.RenamedFrom = "" // it continues under the new name already, or there is nothing to continue
		}
		rc.Waiting, rc.WaitingDetail = decision.Held(in.Parents)
		if to, document, ok := decision.Destination(in); ok && decision.OtherState(in.Last, to, document) {
			rc.Waiting, rc.WaitingDetail = holdfast.ReasonStateWouldMove, decision.OtherStateText(in.Last, to, document)
		}
		return own, nil
	}
	if in.Last.Run == "" {
		rc.Waiting = holdfast.ReasonNeverApplied
		return own, nil
	}
	rc.Waiting, rc.WaitingDetail = decision.Spared(in)
	if rc.Waiting != holdfast.ReasonProtected && in.Removals > 1 && in.Removals >= in.Fleet {
		rc.Waiting = holdfast.ReasonMissing // as it will be said after the merge
		rc.WaitingDetail = fmt.Sprintf("branch %q would no longer define any of %d clusters, which proves nothing: "+
			"keep one, and remove that in another pull request", pr.BaseBranch, in.Fleet)
	}
	return own, nil
}

// reviewable are the plans of a cluster in a merged pull request, newest first, without
// those that the merge came before the end of, if its head was planned before: that is what
// people saw.
func reviewable(pr holdfast.PullRequestRecord, plans []holdfast.Run) []holdfast.Run {
	ended := slices.IndexFunc(plans, func(run holdfast.Run) bool {
		return run.Status.Done() && run.Status != holdfast.RunCanceled
	})
	if ended > 0 && plans[ended].Status.Good() && plans[ended].Revision == pr.Head {
		return plans[ended:]
	}
	return plans
}

// viewPlan shows the newest plan; while that is being made, the one before.
func (v *viewer) viewPlan(ctx context.Context, look planLook, rc *report.Cluster, plans []holdfast.Run) error {
	if len(plans) == 0 {
		return nil
	}
	rc.Plan = &plans[0]
	if plans[0].Status == holdfast.RunInterrupted && decision.Deaths(plans) > v.opts.Settings.MaxRetries {
		rc.Waiting = holdfast.ReasonPlanFailed // it is not made again: see again
	}
	shown := slices.IndexFunc(plans, func(run holdfast.Run) bool {
		return run.Status == holdfast.RunPlanned || run.Status == holdfast.RunNoChanges
	})
	if shown > 0 && plans[0].Status.Done() && plans[0].Status != holdfast.RunCanceled {
		shown = -1 // it failed: what was planned before is not news
	}
	if shown < 0 {
		return v.viewQueue(ctx, rc, plans[0])
	}
	summary, err := look.plan(ctx, plans[shown].ID)
	switch lost := errors.Is(err, holdfast.ErrNotFound); {
	case lost && plans[0].Status == holdfast.RunPlanned:
		rc.Plan = withoutPlan(plans[0])
	case lost:
	case err != nil:
		return err
	default:
		rc.Summary, rc.Previous = summary, shown > 0
	}
	return v.viewQueue(ctx, rc, plans[0])
}

// withoutPlan is a run whose plan cannot be shown, in the form that people see.
func withoutPlan(run holdfast.Run) *holdfast.Run {
	run.Status, run.Failure = holdfast.RunErrored, &lostPlan
	return &run
}

// lostPlan is what is wrong with a plan that cannot be shown.
var lostPlan = holdfast.Failure{ //nolint:gochecknoglobals // a constant
	Step: "show", Cause: holdfast.CauseUnreadablePlan, Summary: "the plan that was made is not in the server's store, or cannot be read there",
	Hint: "plan it again; if this recurs, check the server's disk or object store",
}

// viewEngine shows which engine has written the state of a cluster whose records were not
// read for its applies: under its former name, if it has none yet. Own is what was read of
// the cluster before; nil: nothing was.
func (v *viewer) viewEngine(ctx context.Context, rc *report.Cluster, pr holdfast.PullRequestRecord, own *onRecord) error {
	for _, name := range []string{rc.Name, rc.Document.RenamedFrom} {
		if name == "" || rc.Engine != "" {
			break
		}
		found := own
		if found == nil || name != rc.Name {
			var err error
			if found, err = v.recorded(ctx, name); err != nil {
				return err
			}
		}
		rec := found.cluster
		if rec.Name == "" || name != rc.Name && (rec.Deletion != nil || rec.Owner != pr.Repo) {
			continue
		}
		showEngine(rc, rec, found.branch)
	}
	return nil
}

// recorded reads what is on record of a cluster, for its state to be shown.
func (v *viewer) recorded(ctx context.Context, name string) (*onRecord, error) {
	rec, err := v.opts.Store.Cluster(ctx, name)
	if errors.Is(err, holdfast.ErrNotFound) {
		return &onRecord{}, nil
	} else if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", name, err)
	}
	branch, err := history.Branch(ctx, v.opts.Store, name)
	return &onRecord{cluster: rec, branch: branch}, err
}

// showEngine takes from the records of a cluster which engine has written its state.
func showEngine(rc *report.Cluster, rec holdfast.ClusterRecord, branch []holdfast.Run) {
	wrote := decision.LastApplied(rec, branch)
	rc.Engine = strings.TrimSpace(wrote.EngineName + " " + wrote.EngineVersion)
}

// viewQueue says which runs a run that is not executed yet waits for.
func (v *viewer) viewQueue(ctx context.Context, rc *report.Cluster, run holdfast.Run) error {
	if !run.Status.Pending() {
		return nil
	}
	others, err := v.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster:  run.Cluster,
		Statuses: []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRunning, holdfast.RunRetrying},
	})
	if err != nil {
		return fmt.Errorf("list runs of %q: %w", run.Cluster, err)
	}
	for _, other := range others {
		ahead := other.Status == holdfast.RunRunning || !other.Kind.OnlyPlans() ||
			other.ID < run.ID && other.Kind != holdfast.RunDrift
		if other.ID == run.ID || !ahead {
			continue
		}
		rc.Queue++
		if other.Status == holdfast.RunRunning {
			rc.Waiting, rc.WaitingDetail = holdfast.ReasonLocked, holder(other)
		}
	}
	if rc.Waiting == "" && run.Reason == holdfast.ReasonNoAgent {
		rc.Waiting, rc.WaitingDetail = run.Reason, run.Detail
	}
	if rc.Waiting == "" {
		rc.Waiting, rc.WaitingDetail, err = v.opts.Fleet.CapWait(ctx, run.Document)
	}
	return err
}

func holder(run holdfast.Run) string {
	if run.PullRequest.IsZero() {
		return fmt.Sprintf("%s (%s) since %s UTC", run.ID, run.Kind, run.StartedAt.UTC().Format(time.TimeOnly))
	}
	return fmt.Sprintf("the %s of #%d since %s UTC", run.Kind, run.PullRequest.Number, run.StartedAt.UTC().Format(time.TimeOnly))
}
