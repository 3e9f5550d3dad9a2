package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/report"
)

// With more than pushQuick clusters that a commit has brought, its status is
// looked at in a rhythm: at most each progressInterval, and for a tenth of the
// time.
const pushQuick = 100

// pushLook is when the status of a commit was looked at last, and how long that
// took.
type pushLook struct {
	at   time.Time
	took time.Duration
}

// showPush writes the status of a commit that came to the tracked branch
// without a pull request.
func (u *pushes) showPush(ctx context.Context, key showKey) error {
	post, err := u.opts.Store.Post(ctx, statusKey(key.repo, key.revision, holdfast.ContextApply))
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read status of %s: %w", key.revision.Short(), err)
	}
	waits := err == nil && post.Status.State == holdfast.StatusPending
	if key.left && !waits {
		return nil // it is final, or there never was anything to say
	}
	if wait := u.pushWait(key); wait > 0 && !key.left { // of many clusters: to list them takes a while, too
		u.shows.AddAfter(key, wait)
		return nil
	}
	names, err := u.opts.Store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: key.repo, Revision: key.revision, Deleted: true})
	if err != nil {
		return fmt.Errorf("list clusters of %q: %w", key.repo, err)
	}
	if len(names) == 0 && waits && post.PullRequest.IsZero() {
		return u.supersededPush(ctx, key, post)
	}
	if len(names) > pushQuick {
		wait := u.pushWait(key)
		if key.left && !key.calm { // to find out whether there is news takes as long as to tell it
			key.calm, wait = true, max(wait, progressInterval)
		}
		if wait > 0 {
			u.shows.AddAfter(key, wait)
			return nil
		}
		began := time.Now()
		defer func() { u.pushLooked(key, time.Since(began)) }()
	}
	clusters, settled, err := u.pushed(ctx, key, names)
	if errors.Is(err, errBehind) {
		u.shows.AddAfter(key, recordLook)
		return nil
	} else if err != nil || len(clusters) == 0 {
		return err
	}
	status := report.PushStatus(key.revision, clusters)
	if key.left && !key.calm && status.State == holdfast.StatusPending && status.Description != post.Status.Description {
		// Clusters leave a commit one after another: which of them have not left yet
		// is not worth a call each time.
		key.calm = true
		u.shows.AddAfter(key, progressInterval)
		return nil
	}
	return u.wantStatus(ctx, outgoing.Post{Repo: key.repo, Status: status}, settled)
}

// pushed returns the state of clusters after a commit, and whether it stays the same
// until somebody acts.
func (u *pushes) pushed(ctx context.Context, key showKey, names []string) (clusters []report.Cluster, settled bool, err error) {
	settled = true
	for some := range slices.Chunk(names, byname.AtOnce) {
		records, err := byname.Records(ctx, u.opts.Store, some)
		if err != nil {
			return nil, false, err
		}
		for _, name := range some {
			rec := records[name]
			if rec.Desired.Revision != key.revision {
				continue
			}
			runs, err := history.Branch(ctx, u.opts.Store, name)
			if err != nil {
				return nil, false, err
			}
			i := slices.IndexFunc(runs, func(run holdfast.Run) bool {
				// An approved apply has the plan that was seen for a review, of no
				// pull request.
				merged := slices.ContainsFunc(run.Reviews, func(v holdfast.Review) bool { return !v.PullRequest.IsZero() })
				return run.Revision == key.revision && !merged && !decision.IsRevert(run)
			})
			if i >= 0 {
				run := runs[i]
				if u.behind(rec, runs, run) {
					return nil, false, errBehind
				}
				settled = settled && run.Status.Done()
				c := report.Cluster{Name: name, Document: rec.Desired.Document, Apply: &run}
				if rec.WaitingFor == "" || rec.WaitingFor == key.revision {
					c.Waiting = rec.Waiting
				}
				clusters = append(clusters, c)
			}
		}
	}
	return clusters, settled, nil
}

// pushWait is how long to wait before a commit's status is looked at.
func (u *pushes) pushWait(key showKey) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, ok := u.checkedAt[key]
	if !ok {
		return 0
	}
	return max(progressInterval, 10*last.took) - time.Since(last.at)
}

func (u *pushes) pushLooked(key showKey, took time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.checkedAt) >= looksKept {
		clear(u.checkedAt) // at worst a look comes too early
	}
	u.checkedAt[key] = pushLook{at: time.Now(), took: took}
}

const looksKept = 256

// supersededPush ends the status of a push that still waited when others took its
// place: exactly that will not be applied now.
func (u *pushes) supersededPush(ctx context.Context, key showKey, post outgoing.Post) error {
	status := post.Status
	status.State, status.Description = holdfast.StatusFailure, "not applied: a later commit took its place"
	return u.wantStatus(ctx, outgoing.Post{Repo: key.repo, Status: status}, true)
}
