package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Who applies a cluster confirms the plan that was the newest when they looked: what
// was planned since, by somebody in another terminal, is not meant.
func TestAnApplyIsOfWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile func(*fleet)
		status    holdfast.CommandStatus
		reason    holdfast.Reason
		reply     string // RUN is the one that was looked at, NEWEST the newest one
	}{
		"nothing": {func(*fleet) {}, holdfast.CommandDone, "", "apply queued, of exactly the plan of `RUN`"},
		"planned again": {func(f *fleet) {
			f.api("bob", holdfast.VerbPlan, "prod")
			f.executeAll(planned)
		}, holdfast.CommandRefused, holdfast.ReasonPlanMoved, "the newest is `NEWEST`"},
		"another push, planned": {func(f *fleet) {
			f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("three")})
			f.look()
			f.executeAll(planned)
		}, holdfast.CommandRefused, holdfast.ReasonPlanMoved, "the newest is `NEWEST`"},
		"an apply that found another plan": {func(f *fleet) {
			f.api("bob", holdfast.VerbApply, "prod")
			f.executeAll(differs)
		}, holdfast.CommandRefused, holdfast.ReasonPlanMoved, "the newest is `NEWEST`"},
		"an apply that is queued": {func(f *fleet) {
			f.api("bob", holdfast.VerbApply, "prod")
		}, holdfast.CommandRefused, holdfast.ReasonInProgress, ""},
		"an apply that has ended": {func(f *fleet) {
			f.api("bob", holdfast.VerbApply, "prod")
			f.executeAll(good)
		}, holdfast.CommandDone, "", "it is up to date"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
			f.look()
			f.executeAll(planned)
			seen := f.newest("prod")
			tt.meanwhile(f)
			newest := f.newest("prod")
			c, err := f.r.Command(t.Context(), holdfast.Command{
				Author: "alice", Trusted: true, Verb: holdfast.VerbApply, Clusters: []string{"prod"}, Shown: []string{seen.ID},
			})
			f.must(err)
			want := strings.NewReplacer("RUN", seen.ID, "NEWEST", newest.ID).Replace(tt.reply)
			if c.Status != tt.status || c.Reason != tt.reason || !strings.Contains(c.Reply, want) {
				t.Errorf("it is %s (%s): %s; want %s (%s): %s", c.Status, c.Reason, c.Reply, tt.status, tt.reason, want)
			}
			f.settle()
			if run := f.newest("prod"); run.Kind.Writes() && run.Actor == "alice" && (run.Shown != seen.ID || name != "nothing") {
				t.Errorf("it applies %q", run.Shown)
			}
		})
	}
}

// A name that looks like the id of a run is that of a cluster: whoever may command this one
// need not be allowed to command the cluster of that run.
func TestAClusterThatIsCalledAsARunIs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	f.executeAll(planned)
	name := f.newest("prod").ID
	path := "infra/" + name + "/main.tf"
	f.repo.Commit(master, "push", map[string]string{"clusters/c.yaml": document(name), path: module("one")})
	f.adopt()
	for _, verb := range []holdfast.Verb{holdfast.VerbApprove, holdfast.VerbApply} {
		f.api("mallory", verb, name)
		if run := f.newest("prod"); run.Kind.Writes() {
			t.Fatalf("%s of %s is for prod: %s %s", verb, name, run.Kind, run.Status)
		}
	}
	f.repo.Commit(master, "push", map[string]string{path: module("two")})
	f.look()
	f.executeAll(planned)
	seen := f.newest(name)
	if c := f.api("mallory", holdfast.VerbApply, name); c.Status != holdfast.CommandDone || f.newest(name).Shown != seen.ID {
		t.Errorf("the apply of what %s has planned is %s (%s): %s", seen.ID, c.Status, c.Reason, c.Reply)
	}
}
