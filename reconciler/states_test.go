package reconciler_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
)

// migrated has the state of a cluster moved, by a run that proves that it has.
func (f *fleet) migrated(cluster, from, to string) {
	f.t.Helper()
	dry, err := f.r.States().Migrate(f.t.Context(), holdfast.StateMigration{Cluster: cluster, Actor: "alice", DryRun: true})
	f.must(err)
	if dry.Run != "" || !strings.Contains(dry.From, from) || !strings.Contains(dry.To, to) {
		f.t.Fatalf("a dry run says %+v, not from %s to %s", dry, from, to)
	}
	m, err := f.r.States().Migrate(f.t.Context(), holdfast.StateMigration{Cluster: cluster, Actor: "alice"})
	f.must(err)
	if _, err := f.r.States().Migrate(f.t.Context(), holdfast.StateMigration{Cluster: cluster, Actor: "alice"}); !errors.Is(err, holdfast.ErrConflict) {
		f.t.Errorf("a second one at the same time: %v", err)
	}
	a := f.claimAt(f.run(m.Run).RunnerName())
	if a.Run != m.Run || a.Kind != holdfast.RunState || !a.State.Migrates() || a.State.Move.From != m.From || a.State.Move.To != m.To {
		f.t.Fatalf("handed out is %+v, of %+v", a, m)
	}
	if place, err := f.store.StatePlace(f.t.Context(), cluster); err != nil || place.Location != m.From {
		f.t.Errorf("while it runs, the state is at %q, %v", place.Location, err)
	}
	f.finish(a, protocol.Result{Status: holdfast.RunApplied})
	place, err := f.store.StatePlace(f.t.Context(), cluster)
	f.must(err)
	if rec := f.cluster(cluster); place.Location != m.To || place.Former != m.From || rec.Applied.StateLocation != m.To {
		f.t.Errorf("after it, the state is at %q, and what was applied at %q", place.Location, rec.Applied.StateLocation)
	}
	if _, err := f.r.States().Migrate(f.t.Context(), holdfast.StateMigration{Cluster: cluster}); !errors.Is(err, holdfast.ErrConflict) || !strings.Contains(err.Error(), "where it is to be") {
		f.t.Errorf("a third one: %v", err)
	}
}

// run reads a run.
func (f *fleet) run(id string) holdfast.Run {
	f.t.Helper()
	run, err := f.store.Run(f.t.Context(), id)
	f.must(err)
	return run
}

// commit pushes files to the tracked branch, and has them taken in.
func (f *fleet) commit(files map[string]string) {
	f.t.Helper()
	f.repo.Commit(master, "push", files)
	f.look()
}

// bundled is a file of the root module that an attempt executes; empty if it has none.
func (f *fleet) bundled(a protocol.Assignment, name string) string {
	f.t.Helper()
	bundle, err := f.store.Bundle(f.t.Context(), a.Bundle)
	f.must(err)
	defer bundle.Close()
	zip, err := gzip.NewReader(bundle)
	f.must(err)
	for archive := tar.NewReader(zip); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return ""
		}
		f.must(err)
		if head.Name == path.Join(a.Dir, name) {
			data, err := io.ReadAll(archive)
			f.must(err)
			return string(data)
		}
	}
}

const (
	bucketOne = "storage: {type: s3, bucket: one, region: eu-west-1, prefix: eu}"
	bucketTwo = "storage: {type: s3, bucket: two, region: eu-west-1}"
)

// TestStatePrecedence: a block in the code goes first, then spec.state, then the storage of the
// environment's runner, then Holdfast's own backend.
func TestStatePrecedence(t *testing.T) {
	t.Parallel()
	code := map[string]string{"infra/prod/backend.tf": "terraform {\n  backend \"gcs\" {\n    bucket = \"code\"\n    prefix = \"prod\"\n  }\n}\n"}
	spec := "state: {type: s3, bucket: document, key: prod}"
	for name, tt := range map[string]struct {
		code    map[string]string
		spec    []string
		storage string
		want    string
		runner  string
	}{
		"nothing says it":             {want: "clusters/prod", runner: "local"},
		"the runner has none":         {want: "clusters/prod", runner: "eu"},
		"the runner":                  {storage: bucketOne, want: "s3:bucket=one,key=eu/p/e/prod.tfstate", runner: "eu"},
		"the runner, gcs":             {storage: "storage: {type: gcs, bucket: one, prefix: eu}", want: "gcs:bucket=one,prefix=eu/p/e/prod", runner: "eu"},
		"the runner, azurerm":         {storage: "storage: {type: azurerm, storageAccount: acme, container: states}", want: "azurerm:storage_account_name=acme,container_name=states,key=p/e/prod.tfstate", runner: "eu"},
		"the runner, kubernetes":      {storage: "storage: {type: kubernetes, namespace: states}", want: "kubernetes:secret_suffix=prod-h", runner: "eu"},
		"the document":                {spec: []string{spec}, want: "s3:bucket=document,key=prod", runner: "local"},
		"the document and the runner": {spec: []string{spec}, storage: bucketOne, want: "s3:bucket=document,key=prod", runner: "eu"},
		"the code":                    {code: code, want: "gcs:bucket=code,prefix=prod", runner: "local"},
		"the code and the runner":     {code: code, storage: bucketOne, want: "gcs:bucket=code,prefix=prod", runner: "eu"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"clusters/prod.yaml": document("prod", tt.spec...), "infra/prod/main.tf": module("one")}
			for path, text := range tt.code {
				files[path] = text
			}
			files["runners/eu.yaml"] = remote("eu", tt.storage)
			files["runners/rules.yaml"] = rule("all", "{runner: "+tt.runner+"}")
			f := newFleet(t, files, definesRunners)
			f.look()
			a := f.claimAt(tt.runner)
			if a.Cluster != "prod" || !strings.HasPrefix(a.StateLocation, tt.want) || a.OwnState != (tt.want == "clusters/prod") {
				t.Fatalf("the plan is of %q with its state at %q", a.Cluster, a.StateLocation)
			}
			if override := f.bundled(a, rootmodule.StateOverrideFile); (override != "") != (tt.storage != "" && tt.code == nil && tt.spec == nil) {
				t.Errorf("the bundle says where the state is: %q", override)
			}
			f.finish(a, protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"})
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.StateLocation != a.StateLocation {
				t.Errorf("it waits for %q, with its state at %q", rec.Waiting, rec.Applied.StateLocation)
			}
			place, err := f.store.StatePlace(t.Context(), "prod")
			f.must(err)
			if place.Location != a.StateLocation {
				t.Errorf("on record its state is at %q", place.Location)
			}
			if m, err := f.r.States().Migrate(t.Context(), holdfast.StateMigration{Cluster: "prod"}); !errors.Is(err, holdfast.ErrConflict) {
				t.Errorf("it would move: %+v, %v", m, err)
			}
		})
	}
}

// An edited storage stays out of force as long as a state would move by it. Once the states are
// migrated it is in force, and everything continues.
func TestAnEditedStorageWaitsForMigrations(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["runners/eu.yaml"] = remote("eu", bucketOne)
	files["runners/rules.yaml"] = rule("all", "{runner: eu}")
	f := newFleet(t, files, definesRunners)
	f.look()
	for range 2 {
		f.finish(f.claimAt("eu"), protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"})
	}
	f.open(1, map[string]string{"runners/eu.yaml": remote("eu", bucketTwo)})
	f.post()
	for _, want := range []string{"StateWouldMove", "the state of prod is s3:bucket=one,key=eu/p/e/prod.tfstate and would be s3:bucket=two,key=p/e/prod.tfstate"} {
		if comment := f.forge.comment(1); !strings.Contains(comment, want) {
			t.Errorf("the comment lacks %q:\n%s", want, comment)
		}
	}
	f.merge(1, byMerge)
	storage := func() string {
		runners, err := f.store.Runners(t.Context())
		f.must(err)
		return fmt.Sprint(runners[0].Document.Storage.Bucket, " ", len(runners[0].Faults))
	}
	if got := storage(); got != "one 1" {
		t.Errorf("after the merge the runner has %s", got)
	}
	for _, name := range []string{"preprod", "prod"} {
		f.migrated(name, "bucket=one,key=eu/p/e/"+name+".tfstate", "bucket=two,key=p/e/"+name+".tfstate")
		f.must(f.r.Again(t.Context()))
		want := "one 1"
		if name == "prod" {
			want = "two 0"
		}
		if got := storage(); got != want {
			t.Errorf("after %s has moved the runner has %s, not %s", name, got, want)
		}
	}
	f.commit(map[string]string{"infra/prod/main.tf": module("two")})
	if a := f.claimAt("eu"); a.Cluster != "prod" || !strings.Contains(a.StateLocation, "bucket=two") {
		t.Errorf("the next plan is of %q with its state at %q", a.Cluster, a.StateLocation)
	}
}

// A refresh that would move states is refused, and names them; once they are migrated it moves
// the environment.
func TestARefreshWaitsForMigrations(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["runners/eu.yaml"] = remote("eu", bucketOne) + "---\n" + remote("us", bucketTwo)
	files["runners/rules.yaml"] = rule("all", "{runner: eu}")
	f := newFleet(t, files, definesRunners)
	f.look()
	for range 2 {
		f.finish(f.claimAt("eu"), protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"})
	}
	f.commit(map[string]string{"runners/rules.yaml": rule("all", "{runner: us}")})
	key := holdfast.EnvironmentKey{Project: "p", Name: "e"}
	for _, dry := range []bool{true, false} {
		var refused *holdfast.RefusedError
		if _, _, err := f.r.RefreshRunner(t.Context(), key, dry, "alice"); !errors.As(err, &refused) || refused.Reason != holdfast.ReasonStateWouldMove ||
			!strings.Contains(refused.Text, "preprod is s3:bucket=one") || !strings.Contains(refused.Text, "would be s3:bucket=two") {
			t.Errorf("a refresh says %v", err)
		}
	}
	f.migrated("preprod", "bucket=one", "bucket=two")
	if rec := f.cluster("preprod"); rec.Waiting != "" {
		t.Errorf("between its runners, it waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
	f.migrated("prod", "bucket=one", "bucket=two")
	_, after, err := f.r.RefreshRunner(t.Context(), key, false, "alice")
	f.must(err)
	if after.Runner != "us" {
		t.Errorf("it has the runner %q", after.Runner)
	}
	f.commit(map[string]string{"infra/prod/main.tf": module("two")})
	if a := f.claimAt("us"); a.Cluster != "prod" || !strings.Contains(a.StateLocation, "bucket=two") {
		t.Errorf("the next plan is of %q with its state at %q", a.Cluster, a.StateLocation)
	}
}

// A state in the storage of a runner stays where it is when its cluster is renamed. Another
// cluster that gets the former name has another place.
func TestAStoredStateOfARenamedCluster(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["runners/eu.yaml"] = remote("eu", bucketOne)
	files["runners/rules.yaml"] = rule("all", "{runner: eu}")
	f := newFleet(t, files, definesRunners)
	f.look()
	for range 2 {
		f.finish(f.claimAt("eu"), protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"})
	}
	const key = "s3:bucket=one,key=eu/p/e/prod.tfstate"
	f.commit(map[string]string{"clusters/prod.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("one")})
	f.look()
	a := f.claimAt("eu")
	if a.Cluster != "live" || a.StateLocation != key {
		t.Fatalf("after the rename, the plan is of %q with its state at %q: %v", a.Cluster, a.StateLocation, f.runs("live"))
	}
	f.finish(a, protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"})
	f.commit(map[string]string{"clusters/new.yaml": document("prod")})
	f.look()
	if a := f.claimAt("eu"); a.Cluster != "prod" || a.StateLocation != "s3:bucket=one,key=eu/p/e/prod~2.tfstate" {
		t.Errorf("of the new one, the plan is of %q with its state at %q", a.Cluster, a.StateLocation)
	}
}

// A migration that fails, or whose agent dies, leaves everything as it was, and can be asked for
// again; while it waits or runs, nothing else of its cluster is handed out.
func TestAMigrationThatFails(t *testing.T) {
	t.Parallel()
	f := stateMoves(t, nil)
	f.merge(1, byMerge)
	before := f.cluster("prod").Applied
	for name, result := range map[string]protocol.Result{
		"it fails":       {Status: holdfast.RunErrored, Failure: &holdfast.Failure{Step: "plan", Summary: "the plan has changes", Cause: holdfast.CauseMigrationUnproven}},
		"its agent dies": {Status: holdfast.RunInterrupted, Failure: &holdfast.Failure{Step: "push", Summary: "killed", Cause: holdfast.ReasonAgentKilled}},
	} {
		m, err := f.r.States().Migrate(t.Context(), holdfast.StateMigration{Cluster: "prod", Actor: "alice"})
		f.must(err)
		if _, err := f.r.CheckDrift(t.Context(), "prod", "alice"); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("%s: a drift check meanwhile: %v", name, err)
		}
		a := f.claim()
		if a.Run != m.Run {
			t.Fatalf("%s: handed out is a %s", name, a.Kind)
		}
		if other := f.claim(a.AttemptRef); other.Cluster == "prod" {
			t.Errorf("%s: a %s is handed out as well", name, other.Kind)
		}
		f.finish(a, result)
		if after := f.cluster("prod").Applied; after.StateLocation != before.StateLocation || after.Bundle != before.Bundle {
			t.Errorf("%s: the state is at %s", name, after.StateLocation)
		}
		if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonStateWouldMove {
			t.Errorf("%s: it waits for %q", name, rec.Waiting)
		}
		_, err = f.r.CheckDrift(t.Context(), "prod", "alice")
		f.must(err)
		if drift := f.claim(); drift.Kind != holdfast.RunDrift || drift.StateLocation != before.StateLocation {
			t.Errorf("%s: after it a %s is handed out, with the state at %s", name, drift.Kind, drift.StateLocation)
		} else {
			f.finish(drift, protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"})
		}
	}
	f.migrated("prod", "key=old", "key=new")
}
