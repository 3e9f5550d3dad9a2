package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/report"
)

// Drift is reported in issues of the cluster's repository: one of its own for each
// cluster that has drifted, for those first that have longest, and beyond so many one
// that sums up. What they should say is derived from the records each time, and updated
// only if that has changed.

const (
	issuePrefix   = "issue:drift:"
	summaryPrefix = "issue:drift-summary:"

	// driftLabel is on every issue of ours.
	driftLabel = "holdfast-drift"

	// failuresForIssue is how many failed checks in a row make an issue.
	failuresForIssue = 3

	// With more drifted clusters than issuesQuick in a repository, its issues are
	// looked at in a rhythm, however many checks end.
	issuesQuick = 100
	issuesApart = 10 * time.Second
)

// issueKey is a repository whose issues are to be looked at, or one cluster of
// it.
type issueKey struct {
	repo    string
	cluster string // empty: which clusters have an issue, and what they say
}

// UpdateIssue asks for an update of a repository's issues about a cluster, wherever
// that is now.
func (i *issues) UpdateIssue(repo, cluster string) {
	i.drifts.Add(issueKey{repo: repo, cluster: cluster})
}

// Drifted asks for an update of the issue of a cluster that was checked, or has ended.
func (i *issues) Drifted(rec holdfast.ClusterRecord) {
	if rec.Drift.Status != holdfast.DriftUnchecked || rec.Deletion != nil {
		i.UpdateIssue(rec.Owner, rec.Name)
	}
}

// showDrift updates what the outbox holds of issues.
func (i *issues) showDrift(ctx context.Context, key issueKey) error {
	if _, watched := i.opts.Repositories[key.repo]; !watched {
		return nil
	}
	if key.cluster == "" {
		return i.showRepository(ctx, key.repo)
	}
	rec, err := i.opts.Store.Cluster(ctx, key.cluster)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read cluster %q: %w", key.cluster, err)
	}
	closed, err := i.closeIssues(ctx, key.repo, rec)
	if err != nil {
		return err
	}
	summed, err := i.opts.Store.Post(ctx, summaryPrefix+key.repo)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read the summary of %q: %w", key.repo, err)
	}
	if closed || standing(rec) || err == nil && !summed.Closed { // others may move up, or down
		i.drifts.Add(issueKey{repo: key.repo})
	}
	return nil
}

// standing reports whether there is something to show about a cluster's drift: it has
// drifted, as far as is known, or the checks fail.
func standing(rec holdfast.ClusterRecord) bool {
	drift := rec.Drift
	known := drift.Status == holdfast.DriftFound ||
		drift.Status == holdfast.DriftFailed && (drift.Fingerprint != "" || drift.Failures >= failuresForIssue)
	return known && rec.Deletion == nil && rec.Applied.Run != "" && decision.DriftSettings(rec).OnDrift != "ignore"
}

// closeIssues closes issues about a cluster that are no longer true: all there is,
// if the cluster has not drifted, and that in a repository which the cluster
// has left. It reports whether there was any.
func (i *issues) closeIssues(ctx context.Context, repo string, rec holdfast.ClusterRecord) (bool, error) {
	first := issuePrefix + rec.Name
	keys := []string{first, first + ":" + repo, first + ":" + rec.Owner}
	for _, key := range slices.Compact(keys) {
		post, err := i.opts.Store.Post(ctx, key)
		switch {
		case errors.Is(err, holdfast.ErrNotFound) && key == first:
			return false, nil // then there are no others
		case errors.Is(err, holdfast.ErrNotFound):
			continue
		case err != nil:
			return false, fmt.Errorf("read post %s: %w", key, err)
		}
		if post.Closed || standing(rec) && post.Repo == rec.Owner {
			continue
		}
		told := decision.DriftOutline(rec)
		if post.Repo == rec.Owner {
			if told, err = i.opts.Fleet.DriftReport(ctx, rec); err != nil {
				return false, err
			}
		}
		if rec.Deletion != nil || post.Repo != rec.Owner {
			told.State.Status = holdfast.DriftUnchecked
		}
		title, body, closed := report.DriftIssue(told, i.opts.Settings.Now())
		if !closed {
			continue // nothing proves that it is gone
		}
		return true, i.want(ctx, outgoing.Post{
			Key: key, Kind: outgoing.PostIssue, Repo: post.Repo, Title: title, Body: body, Closed: true,
		})
	}
	return false, nil
}

// showRepository writes to the outbox what the issues of a repository should say.
// It looks at the drifted clusters only, and reads plans of those only whose own
// issue has something new to say.
func (i *issues) showRepository(ctx context.Context, repo string) error {
	if wait := i.issuesWait(repo); wait > 0 {
		i.drifts.AddAfter(issueKey{repo: repo}, wait)
		return nil
	}
	drifted, err := i.driftedIn(ctx, repo)
	if err != nil {
		return err
	}
	own := max(i.opts.Settings.MaxIssues, 0)
	var errs []error // one that cannot be reported does not hold up the others
	for _, rec := range drifted[:min(own, len(drifted))] {
		errs = append(errs, i.showCluster(ctx, rec))
	}
	errs = append(errs, i.showSummary(ctx, repo, drifted, own))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.issueState[repo] = issuesWritten{at: time.Now(), clusters: len(drifted)}
	return errors.Join(errs...)
}

// issuesWritten is when a repository's issues were looked at last, and how many
// clusters they are about.
type issuesWritten struct {
	at       time.Time
	clusters int
}

// issuesWait is how long to wait before a repository's issues are looked at.
func (i *issues) issuesWait(repo string) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := i.issueState[repo]
	if last.clusters <= issuesQuick {
		return 0
	}
	return issuesApart - time.Since(last.at)
}

// driftedIn returns the clusters of a repository with something to show about their
// drift, those that have drifted longest first.
func (i *issues) driftedIn(ctx context.Context, repo string) ([]holdfast.ClusterRecord, error) {
	var out []holdfast.ClusterRecord
	for _, status := range []holdfast.DriftStatus{holdfast.DriftFound, holdfast.DriftFailed} {
		records, err := i.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Owner: repo, Drift: status})
		if err != nil {
			return nil, fmt.Errorf("list drifted clusters of %q: %w", repo, err)
		}
		for _, rec := range records {
			if standing(rec) {
				out = append(out, rec)
			}
		}
	}
	slices.SortFunc(out, func(a, b holdfast.ClusterRecord) int {
		return cmp.Or(a.Drift.Since.Compare(b.Drift.Since), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// showCluster gives a cluster its own issue, or updates it.
func (i *issues) showCluster(ctx context.Context, rec holdfast.ClusterRecord) error {
	key, post, err := i.issueOf(ctx, rec)
	if err != nil {
		return err
	}
	var revert holdfast.Run
	if rec.Drift.Revert != "" {
		revert, err = i.opts.Store.Run(ctx, rec.Drift.Revert)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read run %s: %w", rec.Drift.Revert, err)
		}
	}
	stamp := driftStamp(rec, revert)
	if post.Wanted > 0 && !post.Closed && post.Head == stamp {
		return nil // people know
	}
	told, err := i.opts.Fleet.DriftReport(ctx, rec)
	if err != nil {
		return err
	}
	title, body, closed := report.DriftIssue(told, i.opts.Settings.Now())
	if body == "" || closed {
		return nil
	}
	return i.want(ctx, outgoing.Post{
		Key: key, Kind: outgoing.PostIssue, Repo: rec.Owner, Title: title, Body: body, Head: stamp,
	})
}

// driftStamp identifies what people are shown of a cluster's drift: while it is the
// same, they are not notified again.
func driftStamp(rec holdfast.ClusterRecord, revert holdfast.Run) holdfast.Revision {
	drift, outline := rec.Drift, decision.DriftOutline(rec)
	// Failing checks are reported once, and not each time with another message.
	failing := drift.Status == holdfast.DriftFailed && drift.Failures >= failuresForIssue
	acting := string(revert.Status)
	if revert.ID != "" && !revert.Status.Done() {
		acting = "acting"
	}
	d := holdfast.NewDigester("drift issue 1")
	d.Add(string(drift.Fingerprint), drift.Hold, fmt.Sprint(drift.Destroys, drift.Hides, failing))
	again := revert.Status.Done() && drift.CheckedAt.After(revert.FinishedAt)
	d.Add(drift.Revert, acting, fmt.Sprint(again), outline.Document.Drift.OnDrift, fmt.Sprint(outline.NotApplied), string(outline.Waiting))
	return holdfast.Revision(strings.TrimPrefix(string(d.Digest()), "sha256:"))
}

// issueOf returns the key of the post that is a cluster's issue, with the post;
// the zero one if there is none. A cluster that came from another repository has
// another issue here: what is known of the old one is true there only.
func (i *issues) issueOf(ctx context.Context, rec holdfast.ClusterRecord) (string, outgoing.Post, error) {
	key := issuePrefix + rec.Name
	post, err := i.opts.Store.Post(ctx, key)
	if err == nil && post.Repo != rec.Owner {
		key += ":" + rec.Owner
		post, err = i.opts.Store.Post(ctx, key)
	}
	if errors.Is(err, holdfast.ErrNotFound) {
		return key, outgoing.Post{}, nil
	} else if err != nil {
		return key, post, fmt.Errorf("read post %s: %w", key, err)
	}
	return key, post, nil
}

// showSummary sums up what has drifted while that is more than have their own issue.
func (i *issues) showSummary(ctx context.Context, repo string, drifted []holdfast.ClusterRecord, own int) error {
	key := summaryPrefix + repo
	post, err := i.opts.Store.Post(ctx, key)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read post %s: %w", key, err)
	}
	if len(drifted) <= own && (post.Wanted == 0 || post.Closed) {
		return nil
	}
	reports := make([]holdfast.DriftReport, 0, len(drifted))
	for _, rec := range drifted {
		reports = append(reports, decision.DriftOutline(rec))
	}
	title, body, closed := report.DriftSummary(repo, reports, own, i.opts.Settings.Now())
	return i.want(ctx, outgoing.Post{
		Key: key, Kind: outgoing.PostIssue, Repo: repo, Title: title, Body: body, Closed: closed,
	})
}

// putIssue makes an issue on a forge as it is wanted, and returns its id.
func putIssue(ctx context.Context, forge Forge, post outgoing.Post) (string, error) {
	marker := report.DriftSummaryMarker(post.Repo)
	if cluster, ok := strings.CutPrefix(post.Key, issuePrefix); ok {
		cluster, _, _ = strings.Cut(cluster, ":")
		marker = report.DriftMarker(cluster)
	}
	issue, err := forge.PutIssue(ctx, post.Repo, post.ExternalID, marker, holdfast.Issue{
		Title: post.Title, Body: post.Body, Closed: post.Closed, Labels: []string{driftLabel},
	})
	return issue.ID, err
}
