package reconciler

import (
	"context"
	"io"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/act"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/drift"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/leader"
)

func newLoop(r *Reconciler) *act.Loop {
	folders := make(map[string]map[string]string, len(r.opts.Sources.Repositories))
	for _, repo := range r.opts.Sources.Repositories {
		folders[repo.Name] = repo.Templates
	}
	grants := r.opts.Grants
	return act.NewLoop(act.Options{
		Store: patientStore{r.opts.Store, r.artefacts}, Git: r.opts.Sources.Git, Logger: r.opts.Telemetry.Logger, Now: r.opts.Now,
		Rooms: act.Rooms{
			Catalogs: r.catalogs, Releases: r.releases, Resolver: r.resolver, Lineage: r.lineage, Records: r.records,
			Outputs: r.outputs, Agenda: r.agenda, Traces: r.traces, Gates: r.gates, Places: r.places, Policies: r.policies,
			Deciding: &r.deciding,
		},
		Peers: act.Peers{
			Drift: r.drift, Dispatcher: r.dispatcher, Publisher: announcing{r}, Impacts: r.impacts, Rescue: r.rescue,
			Intake: r.intake, Decided: r.opts.Telemetry.Metrics.Decided, Ended: r.ended,
		},
		Grants: act.Grants{
			Forbidden: grants.forbidden, Credentials: grants.Credentials, SameCredential: grants.SameCredential,
			SecretSources: grants.SecretSources, Limits: grants.granted,
		},
		Settings: act.Settings{
			FingerprintKey: r.opts.Replica.FingerprintKey, Lock: decision.LockWait{Timeout: r.opts.Limits.LockTimeout, Pause: r.opts.Limits.RetryDelay},
			Resumes: decision.Resumes{Most: r.opts.Limits.Retries, Backoff: r.opts.Limits.RetryDelay}, Templates: folders,
		},
	})
}

// announcing shows what was decided, and calls who notifies others of it.
type announcing struct{ r *Reconciler }

// Decided is called after each decision.
func (a announcing) Decided(ctx context.Context, in decision.Input) {
	a.r.publish.Decided(ctx, in)
	if also := a.r.opts.Reports.Decided; also != nil {
		also(in)
	}
}

// patientStore is the Store for decisions, which are to be made whatever is damaged: what
// cannot be read of runs counts as not kept after a while.
type patientStore struct {
	Store
	artefacts *history.Patient
}

// Artefact opens what a run's last attempt that stored it under name left.
func (s patientStore) Artefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	return s.artefacts.Artefact(ctx, run, name)
}

func newDrift(r *Reconciler) *drift.Keeper {
	watched := make(map[string]bool, len(r.opts.Sources.Repositories))
	for _, repo := range r.opts.Sources.Repositories {
		watched[repo.Name] = true
	}
	return drift.NewKeeper(drift.Options{
		Store: r.opts.Store, Logger: r.opts.Telemetry.Logger, Now: r.opts.Now,
		Rooms: drift.Rooms{Records: r.records, Outputs: r.outputs, Agenda: r.agenda, Deciding: &r.deciding},
		Peers: drift.Peers{Decider: deciding{r}, Dispatcher: r.dispatcher, Publisher: r.publish},
		Settings: drift.Settings{
			Leads: func() bool { return r.leader.Leads(leader.Fleet) }, Checks: r.opts.Limits.Drift, Watched: func(repo string) bool { return watched[repo] },
		},
	})
}

// deciding is the act.Loop as the keeper of drift, which is made before it, sees it.
type deciding struct{ r *Reconciler }

// Observe gathers what the records say: all that a decision depends on, except for the
// merges of a tracked branch.
func (d deciding) Observe(ctx context.Context, req holdfast.Request) (decision.Input, error) {
	return d.r.loop.Observe(ctx, req)
}

// Once decides about a cluster and acts on it.
func (d deciding) Once(ctx context.Context, req holdfast.Request) error {
	return d.r.loop.Once(ctx, req)
}

// Suspension is what a cluster is suspended with.
func (d deciding) Suspension(ctx context.Context, rec holdfast.ClusterRecord) (string, error) {
	return d.r.loop.Suspension(ctx, rec)
}
