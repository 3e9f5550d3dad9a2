package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/mergequeue"
)

// groupLook is when a group is looked at again whose pull requests are not all
// planned.
const groupLook = 5 * time.Second

// judgeGroups sets the plan status of the commits that a merge queue would make
// the head of the tracked branch, once for each.
func (p *pullRequests) judgeGroups(ctx context.Context, repo Repository) error {
	if repo.Local {
		return nil
	}
	refs := p.mirror.last(repo.Name)
	head := refs["refs/heads/"+repo.Branch]
	entries := mergequeue.Entries(refs, repo.Branch)
	if head == "" || len(entries) == 0 {
		return nil
	}
	var waits bool
	for _, entry := range entries {
		status, err := p.judgeGroup(ctx, repo, head, entry, entries)
		if err != nil {
			return fmt.Errorf("judge merge group %s of %q: %w", entry.Commit.Short(), repo.Name, err)
		}
		waits = waits || status.State == holdfast.StatusPending
	}
	if waits {
		p.Agenda.LookAfter(agenda.Look{Repo: repo.Name}, groupLook)
	}
	return nil
}

// judgeGroup judges one group, of which the status may be final already: it is the
// zero value then.
func (p *pullRequests) judgeGroup(
	ctx context.Context, repo Repository, head holdfast.Revision, group mergequeue.Entry, entries []mergequeue.Entry,
) (holdfast.CommitStatus, error) {
	if done, err := p.Publisher.Judged(ctx, repo.Name, group.Commit); done || err != nil {
		return holdfast.CommitStatus{}, err
	}
	if merged, err := p.opts.Sources.Git.IsAncestor(ctx, repo.Name, group.Commit, head); merged || err != nil {
		return holdfast.CommitStatus{}, err
	}
	var members []mergequeue.Member
	for _, entry := range entries {
		// Before it in the queue, and not merged yet.
		in, err := p.opts.Sources.Git.IsAncestor(ctx, repo.Name, entry.Commit, group.Commit)
		if err != nil {
			return holdfast.CommitStatus{}, err
		}
		merged, err := p.opts.Sources.Git.IsAncestor(ctx, repo.Name, entry.Commit, head)
		if err != nil {
			return holdfast.CommitStatus{}, err
		}
		if !in || merged {
			continue
		}
		m, err := p.groupMember(ctx, holdfast.PullRequestRef{Repo: repo.Name, Number: entry.Number})
		if err != nil {
			return holdfast.CommitStatus{}, err
		}
		members = append(members, m)
	}
	from, err := p.Catalogs.Read(ctx, repo.Name, string(head))
	if err != nil {
		return holdfast.CommitStatus{}, err
	}
	to, err := p.Catalogs.Read(ctx, repo.Name, string(group.Commit), from.ID)
	if err != nil {
		return holdfast.CommitStatus{}, err
	}
	var result holdfast.PullRequestRecord
	if err := p.compare(ctx, from, to, &result); err != nil {
		return holdfast.CommitStatus{}, err
	}
	unproven := ""
	if to.Len() == 0 {
		if unproven, err = emptied(ctx, p.opts.Store, repo); err != nil {
			return holdfast.CommitStatus{}, err
		}
	}
	status := mergequeue.Judge(group.Commit, members, result.Clusters, len(result.Faults), unproven)
	return status, p.Publisher.WantGroup(ctx, repo.Name, status)
}

// groupMember is a pull request of a group as it is on record, which is looked at
// if it is not.
func (p *pullRequests) groupMember(ctx context.Context, ref holdfast.PullRequestRef) (mergequeue.Member, error) {
	m := mergequeue.Member{Number: ref.Number}
	rec, err := p.opts.Store.PullRequest(ctx, ref)
	if errors.Is(err, holdfast.ErrNotFound) {
		p.Agenda.Look(agenda.Look{Repo: ref.Repo, Number: ref.Number})
		return m, nil
	} else if err != nil {
		return m, fmt.Errorf("read pull request %s: %w", ref, err)
	}
	m.Clusters = rec.Clusters
	m.Plan, err = p.Publisher.PlanStatus(ctx, rec)
	return m, err
}
