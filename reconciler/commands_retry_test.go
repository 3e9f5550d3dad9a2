package reconciler_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// twoByHand is a fleet in whose pull request 1 both clusters were reviewed, which are applied by
// command.
func twoByHand(t *testing.T) (*fleet, *failingStore) {
	t.Helper()
	files := twoClusters()
	for _, name := range []string{"prod", "preprod"} {
		files["clusters/"+name+".yaml"] = document(name, "apply: {onMerge: false}")
	}
	f := newFleet(t, files)
	store := &failingStore{Store: f.store}
	f.restart(func(opts *reconciler.Options) { opts.Store = store })
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")})
	f.executeAll(good)
	return f, store
}

// stored has a comment's command stored.
func (f *fleet) stored(number int, author, body string) string {
	f.t.Helper()
	c := commandsOf(f.forge.says(number, author, body))[0]
	_, err := f.store.StoreCommand(f.t.Context(), c)
	f.must(err)
	return c.ID
}

// wantDone checks that a command was done for all of its clusters.
func (f *fleet) wantDone(id string) {
	f.t.Helper()
	c, err := f.store.Command(f.t.Context(), id)
	if f.must(err); c.Status != holdfast.CommandDone || c.Reply != "" {
		f.t.Errorf("it is %s: %s", c.Status, c.Reply)
	}
}

// TestACommandThatFailsForOneCluster: it is tried again for that one alone.
func TestACommandThatFailsForOneCluster(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"plan", "apply"} {
		for _, failing := range []string{"prod", "preprod"} {
			t.Run(verb+", "+failing+" fails", func(t *testing.T) {
				t.Parallel()
				f, store := twoByHand(t)
				if verb == "apply" {
					f.merge(1, byMerge)
				}
				id := f.stored(1, "alice", "/holdfast "+verb)
				store.failing, store.of = true, failing
				f.r.Obey(t.Context())
				other := map[string]string{"prod": "preprod", "preprod": "prod"}[failing]
				first := f.newest(other)
				if first.Status != holdfast.RunQueued || first.Actor != "alice" {
					t.Fatalf("the newest run of %s is a %s, %s", other, first.Kind, first.Status)
				}
				f.r.Obey(t.Context())
				store.failing = false
				f.r.Obey(t.Context())
				f.settle()
				f.wantDone(id)
				if again := f.newest(other); again.ID != first.ID || again.Status != holdfast.RunQueued {
					t.Errorf("%s was asked for again: %v", other, f.runs(other))
				}
				if run := f.newest(failing); run.Status != holdfast.RunQueued || run.Actor != "alice" {
					t.Errorf("the newest run of %s is a %s, %s", failing, run.Kind, run.Status)
				}
			})
		}
	}
}

// TestAnApplyThatWasNotRecordedAsDone: the server dies after it has queued what a comment
// asks for, which is not refused afterwards for what it has queued itself.
func TestAnApplyThatWasNotRecordedAsDone(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*fleet){
		"queued": func(*fleet) {}, "running": func(f *fleet) { f.claim() }, "applied": func(f *fleet) { f.executeAll(good) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, store := twoByHand(t)
			f.merge(1, byMerge)
			id := f.stored(1, "alice", "/holdfast apply")
			store.forgetful = true
			f.r.Obey(t.Context())
			store.forgetful = false
			f.restart()
			meanwhile(f)
			f.r.Obey(t.Context())
			f.settle()
			f.wantDone(id)
		})
	}
}
