package reconciler_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// spoilRow makes the record of a pull request one that cannot be decoded.
func (f *fleet) spoilRow(number int) {
	f.t.Helper()
	db, err := sql.Open("sqlite", f.database)
	f.must(err)
	defer db.Close()
	_, err = db.ExecContext(f.t.Context(), `UPDATE pull_requests SET doc = x'00' WHERE number = ?`, number)
	f.must(err)
}

// A pull request whose record cannot be decoded costs neither its repository's polls nor
// other pull requests anything. A look at it puts it on record again.
func TestADamagedPullRequestCostsOnlyItself(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.open(2, map[string]string{"infra/preprod/main.tf": module("two")})
	f.executeAll(good)
	f.spoilRow(1)
	if pr := f.pullRequest(1); !pr.Damaged {
		t.Fatalf("it is %+v", pr)
	}
	f.ask("prod") // and with that its open pull requests
	f.must(f.r.Show(t.Context(), onePR))
	f.merge(2, byMerge)
	f.executeAll(good)
	if rec := f.cluster("preprod"); rec.Applied.Revision != f.forge.get(2).MergeCommit || rec.Waiting != "" {
		t.Errorf("the other pull request is not applied: %+v", rec)
	}
	f.must(f.r.PollOnce(t.Context(), infra))
	f.settle()
	if pr := f.pullRequest(1); pr.Damaged || pr.Reason != "" || pr.Fork || !slices.Equal(f.affected(1), []string{"prod"}) {
		t.Errorf("looked at, it is %+v", pr)
	}
}

// Of a damaged record nobody knows whether its comment has shown the plans: they count as
// reviewed if that was written again before the merge, and only then.
func TestReviewsOfADamagedPullRequest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(*fleet)
		waits  holdfast.Reason
	}{
		"looked at before the merge":          {func(f *fleet) { f.lookAt(1); f.executeAll(good) }, ""},
		"looked at, and not posted in time":   {func(f *fleet) { f.lookAt(1) }, holdfast.ReasonUnreviewed},
		"looked at only because of the merge": {func(*fleet) {}, holdfast.ReasonUnreviewed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			f.spoilRow(1)
			test.before(f)
			f.clock.Advance(2e9)
			f.merge(1, byMerge)
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != test.waits || (rec.Applied.Revision == rec.Desired.Revision) != (test.waits == "") {
				t.Errorf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
		})
	}
}

// unreadableRuns cannot read some of the runs.
type unreadableRuns struct {
	reconciler.Store
	run string
}

func (s *unreadableRuns) Run(ctx context.Context, id string) (holdfast.Run, error) {
	if id == s.run {
		return holdfast.Run{}, fmt.Errorf("read run %q: %w", id, holdfast.ErrDamaged)
	}
	return s.Store.Run(ctx, id)
}

// A run that cannot be read is handed to nobody, and all others are.
func TestADamagedRunKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	first := f.newest("preprod")
	f.restart(func(opts *reconciler.Options) { opts.Store = &unreadableRuns{f.store, first.ID} })
	a := f.claim()
	if a.Cluster != "prod" {
		t.Errorf("the agent gets %q", a.Cluster)
	}
	if next := f.claim(a.AttemptRef); next.Run != "" {
		t.Errorf("it gets %q, too", next.Cluster)
	}
}
