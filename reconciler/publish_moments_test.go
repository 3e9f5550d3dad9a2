package reconciler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// lookingStore has somebody look at what is shown after each record that is
// written: a server shows pull requests and commits while it decides about others.
type lookingStore struct {
	reconciler.Store
	look func() // nil: nobody does
}

func (s *lookingStore) looked() {
	if look := s.look; look != nil {
		s.look = nil // what is shown is written, too
		look()
		s.look = look
	}
}

func (s *lookingStore) SaveCluster(
	ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition,
) (holdfast.ClusterRecord, error) {
	saved, err := s.Store.SaveCluster(ctx, c, history...)
	s.looked()
	return saved, err
}

func (s *lookingStore) CreateClusters(
	ctx context.Context, records []holdfast.ClusterRecord, history ...holdfast.Transition,
) ([]holdfast.ClusterRecord, error) {
	created, err := s.Store.CreateClusters(ctx, records, history...)
	s.looked()
	return created, err
}

func (s *lookingStore) RecordCluster(
	ctx context.Context, c holdfast.ClusterRecord, entry holdfast.AuditEntry, history ...holdfast.Transition,
) (holdfast.ClusterRecord, error) {
	saved, err := s.Store.RecordCluster(ctx, c, entry, history...)
	s.looked()
	return saved, err
}

func (s *lookingStore) SavePullRequest(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error) {
	saved, err := s.Store.SavePullRequest(ctx, pr)
	s.looked()
	return saved, err
}

func (s *lookingStore) CreateRunAfter(ctx context.Context, run holdfast.Run, newest string, trail ...holdfast.AuditEntry) error {
	err := s.Store.CreateRunAfter(ctx, run, newest, trail...)
	s.looked()
	return err
}

// Whenever somebody looks, nothing of what two clusters waited for before a merge is
// said of it, and the commit before it is not told of each step.
func TestWaitingReasonIsNeverStale(t *testing.T) {
	t.Parallel()
	both := func(text string) map[string]string {
		return map[string]string{"infra/prod/main.tf": module(text), "infra/preprod/main.tf": module(text)}
	}
	for name, before := range map[string]func(*fleet) holdfast.Revision{
		"a push that nobody reviewed": func(f *fleet) holdfast.Revision {
			base := f.repo.Commit(master, "push", both("two"))
			f.look()
			f.executeAll(good)
			return holdfast.Revision(base)
		},
		"failed applies": func(f *fleet) holdfast.Revision {
			f.open(2, both("two"))
			f.executeAll(good)
			f.merge(2, byMerge)
			f.execute(failing)
			f.execute(failing)
			f.executeAll(good)
			return f.forge.get(2).MergeCommit
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			base := before(f)
			f.ticks()
			if f.cluster("prod").Waiting == "" || f.cluster("preprod").Waiting == "" {
				t.Fatal("they wait for nothing")
			}
			f.open(3, both("three"))
			f.executeAll(good)
			f.ticks()
			told := len(f.forge.told(base, holdfast.ContextApply))

			store := &lookingStore{Store: f.store}
			f.restart(func(o *reconciler.Options) { o.Store = store })
			f.look()
			looks := 0
			store.look = func() {
				looks++
				f.clock.Advance(time.Minute) // a word of progress is due
				f.must(f.r.Show(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 3}))
				f.must(f.r.ShowPush(t.Context(), infra, base))
				f.post()
				comment := f.forge.comment(3)
				if pr := f.pullRequest(3); pr.State == holdfast.PullRequestMerged &&
					(strings.Contains(comment, "held") || strings.Contains(comment, "for a person")) {
					t.Errorf("after %d looks its comment says:\n%s", looks, comment)
				}
			}
			f.mergeUnnoticed(3, byMerge)
			f.lookAt(3) // the code host tells of the pull request first
			f.look()
			f.executeAll(good)
			f.ticks()
			store.look = nil
			merged := f.forge.get(3).MergeCommit
			statuses := f.forge.told(merged, holdfast.ContextApply)
			for i, status := range statuses {
				if last := i == len(statuses)-1; last != strings.HasPrefix(status, "success") || !last && !strings.HasPrefix(status, "pending applying") {
					t.Errorf("the status of the merge was %q", statuses)
				}
			}
			if more := f.forge.told(base, holdfast.ContextApply)[told:]; len(more) > 1 {
				t.Errorf("the commit before it was told of %d times: %q", len(more), more)
			}
			if looks < 6 {
				t.Errorf("somebody looked %d times only", looks)
			}
		})
	}
}
