package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// inEnvironment is prod with the lines of spec, in an environment.
func inEnvironment(environment string, spec ...string) map[string]string {
	return map[string]string{"clusters/prod.yaml": strings.Replace(document("prod", spec...), "environment: e", "environment: "+environment, 1)}
}

// Where the environment of the engine says where the state is, another environment is
// another state: a pull request that changes nothing else is planned, says so, and its
// merge is held. Nothing is applied automatically meanwhile, drift neither.
func TestAMergeThatMovesTheStateToAnotherEnvironmentIsHeld(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ backend, spec, was, is string }{
		"pg":         {`backend "pg" { schema_name = "prod" }`, "", "pg:conn_str=of p/e", "pg:conn_str=of p/live"},
		"consul":     {`backend "consul" { path = "prod" }`, "", "consul:path=prod of p/e", "consul:path=prod of p/live"},
		"http":       {`backend "http" {}`, "", "http:infra/prod of p/e", "http:infra/prod of p/live"},
		"kubernetes": {"", "state: {type: kubernetes, secret_suffix: prod}", "secret_suffix=prod of p/e", "secret_suffix=prod of p/live"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			spec := []string{reverted}
			if tt.spec != "" {
				spec = append(spec, tt.spec)
			}
			files["clusters/prod.yaml"] = document("prod", spec...)
			files["infra/prod/backend.tf"] = "terraform {\n" + tt.backend + "\n}\n"
			f := newFleet(t, files)
			f.adopt()
			before := f.cluster("prod").Applied
			f.open(1, inEnvironment("live", spec...))
			f.executeAll(good)
			if status := f.planStatus(1); !strings.HasPrefix(status, "success StateWouldMove will hold prod") {
				t.Errorf("the plan's status is %s", status)
			}
			for _, want := range []string{"StateWouldMove", tt.was, tt.is} {
				if comment := strings.ReplaceAll(f.forge.comment(1), `\_`, "_"); !strings.Contains(comment, want) {
					t.Errorf("the comment lacks %q:\n%s", want, comment)
				}
			}
			f.merge(1, byMerge)
			if a := f.claim(); a.Run != "" {
				t.Fatalf("a %s of %s was handed out", a.Kind, a.Cluster)
			}
			rec := f.cluster("prod")
			if rec.Waiting != holdfast.ReasonStateWouldMove || !strings.Contains(rec.WaitingDetail, tt.was) || !strings.Contains(rec.WaitingDetail, tt.is) {
				t.Fatalf("merged, prod waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
			if rec.Applied.StateLocation != before.StateLocation || rec.Applied.Document.Environment != "e" {
				t.Errorf("nothing was applied, and its state is %s of %s", rec.Applied.StateLocation, rec.Applied.Document.Environment)
			}
			if run := f.drift(scaled("5")); run.Document.Environment != "e" {
				t.Errorf("the drift check of what was applied is one in %s", run.Document.Environment)
			}
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonStateWouldMove {
				t.Errorf("after it, prod waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			if _, err := f.r.States().Migrate(t.Context(), holdfast.StateMigration{Cluster: "prod", Actor: "alice"}); err == nil || !strings.Contains(err.Error(), "--copied") {
				t.Errorf("without a copy, a migration is refused with %v", err)
			}
			m, err := f.r.States().Migrate(t.Context(), holdfast.StateMigration{Cluster: "prod", Actor: "alice", Copied: true})
			f.must(err)
			a := f.claim()
			if a.Run != m.Run || !a.State.Move.Copied {
				t.Fatalf("handed out is %+v", a)
			}
			f.finish(a, protocol.Result{Status: holdfast.RunApplied})
			f.executeAll(func(protocol.Assignment) protocol.Result {
				return protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"}
			})
			rec = f.cluster("prod")
			if rec.Waiting != "" || rec.Applied.Document.Environment != "live" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Errorf("copied, prod waits for %q (%s), applied in %s", rec.Waiting, rec.WaitingDetail, rec.Applied.Document.Environment)
			}
		})
	}
}

// A bucket is the same one in all environments, as long as none of them leads to its own
// store.
func TestAnotherEnvironmentIsNotAnotherBucket(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", oldState)
	f := newFleet(t, files)
	f.adopt()
	f.open(1, inEnvironment("live", oldState))
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.Document.Environment != "live" {
		t.Errorf("prod waits for %q (%s), applied in %s", rec.Waiting, rec.WaitingDetail, rec.Applied.Document.Environment)
	}
}

// Where the credentials of environments may lead to stores of their own, a bucket is another
// one in another environment.
func TestAnotherEnvironmentMayBeAnotherBucket(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", oldState)
	f := newFleet(t, files, storesDiffer)
	f.adopt()
	f.open(1, inEnvironment("live", oldState))
	f.executeAll(good)
	if status := f.planStatus(1); !strings.HasPrefix(status, "success StateWouldMove will hold prod") {
		t.Errorf("the plan's status is %s", status)
	}
	f.merge(1, byMerge)
	rec := f.cluster("prod")
	if rec.Waiting != holdfast.ReasonStateWouldMove || !strings.Contains(rec.WaitingDetail, "store=environment of p/live") {
		t.Errorf("merged, prod waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
	}
}

// storesDiffer has the environments of a fleet lead to stores of their own.
func storesDiffer(opts *reconciler.Options) { opts.Grants.Varied = []string{"AWS_ENDPOINT_URL_S3"} }

// What was recorded while nobody knew that the environments lead to stores of their own, or
// while they did, is of the same state: nothing is planned again, nor held.
func TestAStateIsTheSameWhenCredentialsChange(t *testing.T) {
	t.Parallel()
	alike := func(opts *reconciler.Options) { opts.Grants.Varied = nil }
	for name, tt := range map[string]struct{ was, is func(*reconciler.Options) }{
		"they differ by now":    {alike, storesDiffer},
		"they did until by now": {storesDiffer, alike},
	} {
		begin := func(t *testing.T) *fleet {
			t.Helper()
			files := twoClusters()
			files["clusters/prod.yaml"] = document("prod", oldState)
			f := newFleet(t, files, tt.was)
			f.adopt()
			return f
		}
		upToDate := func(f *fleet) {
			f.t.Helper()
			rec := f.cluster("prod")
			if rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest || rec.Applied.StateLocation != rec.Desired.StateLocation {
				f.t.Errorf("prod waits for %q (%s), with its state at %s: %v", rec.Waiting, rec.WaitingDetail, rec.Applied.StateLocation, f.runs("prod"))
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := begin(t)
			before := len(f.runs("prod"))
			f.restart(tt.is)
			f.look()
			f.executeAll(good)
			upToDate(f)
			if after := len(f.runs("prod")); after != before {
				t.Errorf("prod was planned again: %v", f.runs("prod"))
			}
		})
		t.Run(name+", with a pull request", func(t *testing.T) {
			t.Parallel()
			f := begin(t)
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.restart(tt.is)
			f.look()
			f.lookAt(1)
			f.executeAll(good)
			f.post()
			if status, comment := f.planStatus(1), f.forge.comment(1); strings.Contains(status+comment, "StateWouldMove") {
				t.Errorf("the status is %s, and the comment:\n%s", status, comment)
			}
			f.merge(1, byMerge)
			f.executeAll(good)
			upToDate(f)
		})
		t.Run(name+", merged meanwhile", func(t *testing.T) {
			t.Parallel()
			f := begin(t)
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.mergeUnnoticed(1, byMerge)
			f.restart(tt.is)
			f.look()
			f.lookAt(1)
			f.executeAll(good)
			upToDate(f)
		})
	}
}

// An apply that is executed while the server is restarted with credentials that change how
// its state is written has the state for itself: a plan of it waits, and says for what.
func TestAnApplyHasItsStateForItselfWhenCredentialsChange(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", oldState)
	f := newFleet(t, files)
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	a := f.claim()
	if a.Kind != apply || a.Cluster != "prod" {
		t.Fatalf("handed out was a %s of %q", a.Kind, a.Cluster)
	}
	f.restart(storesDiffer)
	f.look()
	f.open(2, map[string]string{"infra/prod/main.tf": module("three")})
	if other := f.claim(a.AttemptRef); other.Run != "" {
		t.Errorf("while its apply runs, a %s of %s is handed out, with the state at %s", other.Kind, other.Cluster, other.StateLocation)
	}
	queue, err := f.r.Dispatcher().Queue(t.Context(), holdfast.QueueFilter{Limit: 10})
	f.must(err)
	if len(queue) != 1 || queue[0].Reason != holdfast.ReasonLocked {
		t.Errorf("in the queue are %+v", queue)
	}
	if _, err := f.r.Dispatcher().Heartbeat(t.Context(), a.AttemptRef, protocol.Heartbeat{Step: "apply"}); err != nil {
		t.Error(err)
	}
	f.finish(a, good(a))
	if plan := f.claim(); plan.Kind != holdfast.RunPlan || plan.Cluster != "prod" {
		t.Errorf("after it, a %s of %q is handed out: %v", plan.Kind, plan.Cluster, f.runs("prod"))
	}
}

// What is gone since its state was recorded, while nobody knew of several stores, is not
// destroyed under another cluster whose document has the same bucket and key.
func TestABucketOnRecordIsAnothersToo(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", oldState)
	f := newFleet(t, files)
	f.adopt()
	f.repo.Commit(master, "another name", map[string]string{
		"clusters/prod.yaml": gitserver.Delete,
		"clusters/live.yaml": document("live", oldState), "infra/live/main.tf": module("two"),
	})
	f.restart(storesDiffer)
	f.look()
	if rec := f.cluster("prod"); rec.Desired.Removed || !strings.Contains(rec.Desired.Missing, `is also that of "live"`) {
		t.Errorf("prod is removed %t, missing %q", rec.Desired.Removed, rec.Desired.Missing)
	}
}

// An earlier version called the same state otherwise: neither what it has applied nor what
// it has planned is of another one.
func TestAStateUnderItsFormerNameIsTheSame(t *testing.T) {
	t.Parallel()
	const state = "state: {type: http, address: \"https://states/prod?id=7\"}"
	former := func(f *fleet) {
		rec := f.cluster("prod")
		rec.Applied.StateLocation, rec.Desired.StateLocation = "http:address=https://states/prod", "http:address=https://states/prod"
		_, err := f.store.SaveCluster(t.Context(), rec)
		f.must(err)
		pr := f.pullRequest(1)
		for i := range pr.Clusters {
			pr.Clusters[i].StateLocation = ""
		}
		_, err = f.store.SavePullRequest(t.Context(), pr)
		f.must(err)
		runs, err := f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "prod"})
		f.must(err)
		for _, run := range runs {
			run.StateLocation = rec.Applied.StateLocation
			_, err := f.store.UpdateRun(t.Context(), run)
			f.must(err)
		}
	}
	begin := func() *fleet {
		files := twoClusters()
		files["clusters/prod.yaml"] = document("prod", state)
		f := newFleet(t, files)
		f.adopt()
		f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
		f.executeAll(good)
		former(f)
		return f
	}
	t.Run("open", func(t *testing.T) {
		f := begin()
		f.restart()
		f.look()
		f.lookAt(1)
		f.post()
		if status, comment := f.planStatus(1), f.forge.comment(1); strings.Contains(status+comment, "StateWouldMove") {
			t.Errorf("the status is %s, and the comment:\n%s", status, comment)
		}
	})
	t.Run("merged meanwhile", func(t *testing.T) {
		f := begin()
		f.mergeUnnoticed(1, byMerge)
		f.restart()
		f.look()
		f.lookAt(1)
		f.executeAll(good)
		rec := f.cluster("prod")
		if rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest || !strings.Contains(rec.Applied.StateLocation, "query=") {
			t.Errorf("prod waits for %q (%s), with its state at %s: %v", rec.Waiting, rec.WaitingDetail, rec.Applied.StateLocation, f.runs("prod"))
		}
	})
	t.Run("merged meanwhile, and moved", func(t *testing.T) {
		f := begin()
		f.repo.Commit(master, "move", map[string]string{"clusters/prod.yaml": document("prod", strings.Replace(state, "id=7", "id=8", 1))})
		f.restart()
		f.look()
		f.executeAll(good)
		if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonStateWouldMove {
			t.Errorf("prod waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
		}
	})
}

// A change that waits is planned and applied in the environment that Git says by then:
// one that was queued before is made again.
func TestAChangeIsAppliedInThePresentEnvironment(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"held", "queued"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			if how == "held" {
				f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
				f.look()
				f.executeAll(good)
			} else {
				f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
				f.executeAll(good)
				f.merge(1, byMerge)
			}
			f.repo.Commit(master, "move", inEnvironment("live"))
			f.look()
			if how == "held" {
				f.api("alice", holdfast.VerbApply, "prod")
			}
			if run := f.execute(good); run.Kind != apply || run.Status != holdfast.RunApplied || run.Document.Environment != "live" {
				t.Errorf("after it there is: %s %s in %q: %v", run.Kind, run.Status, run.Document.Environment, f.runs("prod"))
			}
		})
	}
}
