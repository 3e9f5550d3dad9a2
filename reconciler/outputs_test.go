package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

var ofCluster = map[string]string{
	holdfast.OutputRoleEndpoint: "api", holdfast.OutputRoleNodeCount: "nodes", holdfast.OutputRoleKubeconfig: "config",
}

// ends ends an attempt at a run whose outputs have a meaning; no outputs: none
// were kept.
func (f *fleet) ends(a protocol.Assignment, result protocol.Result, outputs string) {
	f.t.Helper()
	run, err := f.store.Run(f.t.Context(), a.Run)
	f.must(err)
	if run.OutputRoles == nil { // as its template says
		run.OutputRoles = ofCluster
		_, err = f.store.UpdateRun(f.t.Context(), run)
		f.must(err)
	}
	for name, text := range map[string]string{protocol.ArtefactPlan: "{}", protocol.ArtefactOutputs: outputs} {
		if text != "" {
			f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, name, strings.NewReader(text)))
		}
	}
	f.finish(a, result)
}

// due claims the next drift check.
func (f *fleet) due() protocol.Assignment {
	f.t.Helper()
	f.later()
	a := f.claim()
	if a.Kind != holdfast.RunDrift {
		f.t.Fatalf("claimed a %q", a.Kind)
	}
	return a
}

func outputsOf(endpoint string, nodes int) string {
	return fmt.Sprintf(`[{"name":"api","value":%q},{"name":"config","sensitive":true},{"name":"nodes","value":%d},{"name":"other","value":[1]}]`, endpoint, nodes)
}

// meant is what the record of prod says.
func (f *fleet) meant() string {
	f.t.Helper()
	a := f.cluster("prod").Applied
	return fmt.Sprintf("%s %d %s %d", a.Endpoint, a.NodeCount, a.Kubeconfig, len(a.OutputRoles))
}

// TestOutputsMeanSomething follows what is known of a cluster from its adoption
// to its end.
func TestOutputsMeanSomething(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod", hourly), "infra/prod/main.tf": module("one")})
	f.look()
	f.ends(f.claim(), protocol.Result{Status: holdfast.RunNoChanges}, outputsOf("https://10.0.0.1:6443", 3))
	if got := f.meant(); got != "https://10.0.0.1:6443 3 config 3" {
		t.Errorf("adopted: %s", got)
	}

	a := f.applyOf(1, "two")
	f.ends(a, good(a), outputsOf("https://10.0.0.2", 5))
	if got := f.meant(); got != "https://10.0.0.2 5 config 3" {
		t.Errorf("applied: %s", got)
	}

	// An apply that could not read its outputs leaves no old ones behind.
	f.clock.Advance(time.Hour)
	a = f.applyOf(2, "three")
	f.ends(a, good(a), "")
	if got := f.meant(); got != " 0  3" {
		t.Errorf("without outputs: %s", got)
	}
	check := f.due()
	if run, err := f.store.Run(t.Context(), check.Run); err != nil || !cmp.Equal(run.OutputRoles, ofCluster) {
		t.Errorf("the check's outputs mean %v, %v", run.OutputRoles, err)
	}
	f.ends(check, protocol.Result{Status: holdfast.RunNoChanges}, outputsOf("https://10.0.0.3", 7))
	if got := f.meant(); got != "https://10.0.0.3 7 config 3" {
		t.Errorf("after a check: %s", got)
	}
	check = f.due()
	f.ends(check, protocol.Result{Status: holdfast.RunNoChanges}, "")
	if got := f.meant(); got != "https://10.0.0.3 7 config 3" {
		t.Errorf("after a check without outputs: %s", got)
	}
	check = f.due()
	f.ends(check, protocol.Result{Status: holdfast.RunPlanned}, outputsOf("https://10.0.0.4", 8))
	if got := f.meant(); got != "https://10.0.0.3 7 config 3" {
		t.Errorf("after a check that found something: %s", got)
	}

	f.open(3, map[string]string{"clusters/prod.yaml": gitserver.Delete, "infra/prod/main.tf": gitserver.Delete})
	f.executeAll(good)
	f.merge(3, byMerge)
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseDeleted || f.meant() != " 0  0" {
		t.Errorf("%s: %s", rec.Phase, f.meant())
	}
}

// TestOutputsOfAFailedApply: what a failed apply has changed is in the state, and so it is
// what the record says, with the run; until the cluster is applied, or found as it was.
func TestOutputsOfAFailedApply(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod", hourly), "infra/prod/main.tf": module("one")})
	f.look()
	f.ends(f.claim(), protocol.Result{Status: holdfast.RunNoChanges}, outputsOf("https://10.0.0.1", 3))
	failed := f.applyOf(1, "two")
	f.ends(failed, failing(failed), outputsOf("https://10.0.0.2", 5))
	if got := f.cluster("prod").Applied; f.meant() != "https://10.0.0.2 5 config 3" || got.OutputsOf() != failed.Run {
		t.Errorf("after a failed apply: %s, of %s", f.meant(), got.OutputsOf())
	}
	f.executeAll(good)
	if got := f.cluster("prod").Applied; got.OutputsOf() != failed.Run || got.Run == failed.Run {
		t.Errorf("while it waits: outputs of %s, applied by %s", got.OutputsOf(), got.Run)
	}
	lost := f.applyOf(2, "three")
	f.ends(lost, failing(lost), "")
	if got := f.cluster("prod").Applied; f.meant() != "https://10.0.0.2 5 config 3" || got.OutputsOf() != failed.Run {
		t.Errorf("after one whose outputs were not kept: %s, of %s", f.meant(), got.OutputsOf())
	}
	f.executeAll(good)
	a := f.applyOf(3, "four")
	f.ends(a, good(a), outputsOf("https://10.0.0.4", 7))
	if got := f.cluster("prod").Applied; f.meant() != "https://10.0.0.4 7 config 3" || got.OutputsOf() != a.Run || got.OutputsRun != "" {
		t.Errorf("after an apply: %s, of %s", f.meant(), got.OutputsOf())
	}
}

// A check of what was applied before must not speak of what is applied now.
func TestOutputsOfAnEarlierCheck(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod", hourly), "infra/prod/main.tf": module("one")})
	f.look()
	f.ends(f.claim(), protocol.Result{Status: holdfast.RunNoChanges}, outputsOf("https://10.0.0.1", 3))
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	check := f.due()
	f.merge(1, byMerge)
	f.must(f.store.PutArtefact(t.Context(), check.AttemptRef, protocol.ArtefactOutputs, strings.NewReader(outputsOf("https://late", 1))))
	f.must(f.r.Dispatcher().Finish(t.Context(), check.AttemptRef, f.left(check, protocol.Result{Status: holdfast.RunNoChanges, Fence: check.Fence})))
	f.restart()                  // and forgets to look at it
	f.clock.Advance(time.Minute) // an apply waits no longer for its repository to be read
	a := f.claim()
	f.ends(a, good(a), outputsOf("https://10.0.0.2", 5))
	f.r.Resume(t.Context())
	f.settle()
	if got := f.meant(); got != "https://10.0.0.2 5 config 3" {
		t.Errorf("the record says %s", got)
	}
}

// lostOutputs cannot read outputs.
type lostOutputs struct {
	reconciler.Store
	err error
}

func (s *lostOutputs) Artefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	if name == protocol.ArtefactOutputs && s.err != nil {
		return nil, s.err
	}
	return s.Store.Artefact(ctx, run, name)
}

// TestOutputsThatCannotBeRead states that outputs are waited for a moment, and
// that a cluster does not hang on them.
func TestOutputsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false} {
		t.Run(map[bool]string{true: "for a moment", false: "for long"}[back], func(t *testing.T) {
			t.Parallel()
			lost := &lostOutputs{err: errors.New("the object store is away")}
			f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
			lost.Store = f.store
			f.restart(func(opts *reconciler.Options) { opts.Store = lost })
			f.look()
			a := f.claim()
			run, err := f.store.Run(t.Context(), a.Run)
			f.must(err)
			run.OutputRoles = ofCluster
			_, err = f.store.UpdateRun(t.Context(), run)
			f.must(err)
			f.must(f.store.PutArtefact(t.Context(), a.AttemptRef, protocol.ArtefactOutputs, strings.NewReader(outputsOf("https://10.0.0.1", 3))))
			f.must(f.r.Dispatcher().Finish(t.Context(), a.AttemptRef, f.left(a, protocol.Result{Status: holdfast.RunNoChanges, Fence: a.Fence})))
			if err := f.r.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), "the object store is away") {
				t.Fatalf("the first look ended with %v", err)
			}
			if rec := f.cluster("prod"); rec.Applied.Run != "" {
				t.Errorf("it was recorded as %+v", rec.Applied)
			}
			want := " 0  3"
			if back {
				lost.err, want = nil, "https://10.0.0.1 3 config 3"
			} else {
				f.clock.Advance(2 * time.Minute)
			}
			f.look()
			f.r.Resume(t.Context())
			f.settle()
			if got := f.meant(); got != want || f.cluster("prod").Applied.Run != a.Run {
				t.Errorf("the record says %s", got)
			}
			lost.err = nil
			f.restart() // and does not know what was to be done
			f.r.Resume(t.Context())
			f.settle()
			if got := f.meant(); got != "https://10.0.0.1 3 config 3" || f.cluster("prod").Applied.OutputsUnread {
				t.Errorf("once the store is back the record says %s", got)
			}
		})
	}
}

func TestAssignmentHasLimits(t *testing.T) {
	t.Parallel()
	want := holdfast.RunLimits{Memory: 1 << 30, Processes: 99, CPU: 1.5}
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")},
		func(opts *reconciler.Options) {
			opts.Grants.Limits = func(holdfast.Cluster) (granted, most holdfast.RunLimits) {
				return want, holdfast.RunLimits{Memory: 2 << 30, Processes: 200, CPU: 2}
			}
		})
	f.look()
	if a := f.claim(); a.Limits != want {
		t.Errorf("limits %+v, want %+v", a.Limits, want)
	}
	f.open(1, map[string]string{"clusters/prod.yaml": document("prod", "limits: {processes: 200, memory: 3GiB}")})
	wantFault := "clusters/prod.yaml:8:36: spec.limits.memory is more than this cluster may have, which is 2GiB"
	if faults := f.pullRequest(1).Faults; len(faults) != 1 || faults[0].Position()+": "+faults[0].Message != wantFault {
		t.Errorf("faults %v, want %s", faults, wantFault)
	}
}

func TestAssignmentHasSecretSources(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")},
		func(opts *reconciler.Options) {
			opts.Grants.SecretSources = func(c holdfast.Cluster, kind holdfast.RunKind) ([]string, map[string][]string) {
				return []string{"/run/secrets/" + c.Name}, map[string][]string{"vault": {string(kind), "{key}"}}
			}
		})
	f.look()
	if a := f.claim(); !slices.Equal(a.SecretDirs, []string{"/run/secrets/prod"}) || !slices.Equal(a.SecretStores["vault"], []string{"plan", "{key}"}) {
		t.Errorf("folders %v, stores %v", a.SecretDirs, a.SecretStores)
	}
}
