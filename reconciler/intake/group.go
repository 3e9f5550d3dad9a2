package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/mergequeue"
)

// groupLook is when a group is looked at again whose pull requests are not all
// planned.
const groupLook = 5 * time.Second

// groupKey names a group of a merge queue.
type groupKey struct {
	repo   string
	commit holdfast.Revision
}

// judgeGroups sets the plan status of the commits that a merge queue would make
// the head of the tracked branch, once for each, and reports whether one of them waits for
// a plan. One that cannot be judged does not keep the others from being judged.
func (p *pullRequests) judgeGroups(ctx context.Context, repo Repository) (waits bool, err error) {
	if repo.Local {
		return false, nil
	}
	refs := p.mirror.last(repo.Name)
	head := refs["refs/heads/"+repo.Branch]
	entries := mergequeue.Entries(refs, repo.Branch)
	p.groups.endAll(func(key groupKey) bool {
		return key.repo == repo.Name && !slices.ContainsFunc(entries, func(e mergequeue.Entry) bool { return e.Commit == key.commit })
	})
	if head == "" || len(entries) == 0 {
		return false, nil
	}
	var failed []error
	for _, entry := range entries {
		status, err := p.judgeGroup(ctx, repo, head, entry, entries)
		if err != nil {
			failed = append(failed, fmt.Errorf("judge merge group %s of %q: %w", entry.Commit.Short(), repo.Name, err))
		}
		waits = waits || status.State == holdfast.StatusPending
	}
	return waits, errors.Join(failed...)
}

// judgeGroup judges one group, whose status may be final already: then it returns the
// zero value. Once looks at a group have failed for a while with an error that is not
// transient, that is its status.
func (p *pullRequests) judgeGroup(
	ctx context.Context, repo Repository, head holdfast.Revision, group mergequeue.Entry, entries []mergequeue.Entry,
) (holdfast.CommitStatus, error) {
	if done, err := p.Publisher.Judged(ctx, repo.Name, group.Commit); done || err != nil {
		return holdfast.CommitStatus{}, err
	}
	key := groupKey{repo.Name, group.Commit}
	status, err := p.groupStatus(ctx, repo, head, group, entries)
	switch {
	case err == nil && status.State == "":
		return status, nil
	case err == nil:
		p.groups.end(key)
	case !p.groups.last(key, err, p.opts.Now()):
		return holdfast.CommitStatus{}, err
	default:
		status = mergequeue.Unreadable(group.Commit, err)
	}
	return status, errors.Join(err, p.Publisher.WantGroup(ctx, repo.Name, status))
}

// groupStatus is what a group's commit is judged to be; the zero value once it is merged. The
// trees are read only if its pull requests are all green.
func (p *pullRequests) groupStatus(
	ctx context.Context, repo Repository, head holdfast.Revision, group mergequeue.Entry, entries []mergequeue.Entry,
) (holdfast.CommitStatus, error) {
	if merged, err := p.opts.Sources.Git.IsAncestor(ctx, repo.Name, group.Commit, head); merged || err != nil {
		return holdfast.CommitStatus{}, err
	}
	members, err := p.groupMembers(ctx, repo, head, group, entries)
	if err != nil {
		return holdfast.CommitStatus{}, err
	}
	if status, decided := mergequeue.JudgeMembers(group.Commit, members); decided {
		return status, nil
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
	if err := p.compared.Compare(ctx, from, to, &result, mergequeue.Removed(members)...); err != nil {
		return holdfast.CommitStatus{}, err
	}
	unproven := ""
	if to.Len() == 0 {
		if unproven, err = emptied(ctx, p.opts.Store, repo); err != nil {
			return holdfast.CommitStatus{}, err
		}
	}
	return mergequeue.Judge(group.Commit, members, result.Clusters, len(result.Faults), unproven), nil
}

// groupMembers are the pull requests of a group: its own, and those before it in the
// queue that are not merged yet.
func (p *pullRequests) groupMembers(
	ctx context.Context, repo Repository, head holdfast.Revision, group mergequeue.Entry, entries []mergequeue.Entry,
) ([]mergequeue.Member, error) {
	var members []mergequeue.Member
	for _, entry := range entries {
		in, err := p.opts.Sources.Git.IsAncestor(ctx, repo.Name, entry.Commit, group.Commit)
		if err != nil {
			return nil, err
		}
		merged, err := p.opts.Sources.Git.IsAncestor(ctx, repo.Name, entry.Commit, head)
		if err != nil {
			return nil, err
		}
		if !in || merged {
			continue
		}
		m, err := p.groupMember(ctx, holdfast.PullRequestRef{Repo: repo.Name, Number: entry.Number})
		if err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
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
