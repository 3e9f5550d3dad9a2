// What one replica does about repositories that another one leads.

package intake

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
)

// Forget drops what is remembered of a repository that this replica is about to lead.
func (i *Intake) Forget(repo string) {
	i.marks.forget(repo)
	i.origins.forgetAll(repo)
	i.failures.forget(func(ref holdfast.PullRequestRef) bool { return ref.Repo == repo })
	i.groups.forget(func(key groupKey) bool { return key.repo == repo })
	i.holds.changed(repo)
}

// Gained reads and polls a repository that this replica leads from now on.
func (i *Intake) Gained(repo string) {
	if _, ok := i.repos[repo]; ok {
		i.Agenda.Look(agenda.Look{Repo: repo})
	}
	i.poller.gained.Send()
}

// HandOver returns, and forgets, what other repositories have had looked at again in one that
// this replica does not lead.
func (i *Intake) HandOver(repo string) Forgotten { return i.marks.handOver(repo) }

// Keep takes HandOver back: no other replica could be notified.
func (i *Intake) Keep(repo string, f Forgotten) {
	if f.Relook {
		i.marks.setRelook(repo)
	}
	if f.Behind {
		i.marks.setBehind(repo)
	}
	for _, cluster := range f.Recheck {
		i.marks.addRecheck(repo, cluster)
	}
}

// Again asks for another look at a repository, as Forgotten says.
func (i *Intake) Again(repo string, f Forgotten) {
	i.Keep(repo, f)
	if f.Relook || f.Behind || len(f.Recheck) > 0 {
		i.marks.setRelook(repo)
	}
	i.Agenda.Look(agenda.Look{Repo: repo})
}

// Follow brings the mirror of a repository up to date that another replica leads: what this
// one leads may be made from it.
func (i *Intake) Follow(ctx context.Context, repo string) error {
	if _, ok := i.repos[repo]; !ok {
		return nil
	}
	if _, err := i.mirror.fetch(ctx, repo); err != nil {
		return err
	}
	i.Impacts.Again(repo)
	return nil
}

// RefsDigest identifies what a repository had when it was last fetched here; empty if it was
// not.
func (i *Intake) RefsDigest(repo string) holdfast.Digest { return i.mirror.last(repo).Digest() }
