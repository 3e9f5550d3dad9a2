package reconciler

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/intake"
	"github.com/holdfast-dev/holdfast/reconciler/upgrade"
)

func newIntake(r *Reconciler) *intake.Intake {
	sources := intake.Sources{Git: r.opts.Git, Forges: make(map[string]intake.Forge, len(r.opts.Forges))}
	for name, forge := range r.opts.Forges {
		sources.Forges[name] = forge
	}
	for _, repo := range r.repos {
		sources.Repositories = append(sources.Repositories, intake.Repository{
			Name: repo.Name, Branch: repo.Branch, Publishes: len(repo.Templates) > 0,
			Local: repo.Local, Forks: repo.Forks, Drafts: repo.Drafts, Poll: repo.Poll,
		})
	}
	return intake.New(intake.Options{
		Store: r.opts.Store, Sources: sources, Identity: r.opts.Identity, Logger: r.opts.Logger, Now: r.opts.Now,
		Rooms: intake.Rooms{
			Catalogs: r.catalogs, Lineage: r.lineage, Records: r.records, Agenda: r.agenda, Traces: r.traces, Looking: &r.looking,
		},
		Peers: intake.Peers{
			Publisher: r.publish, Impacts: r.impacts, Gates: r.gates, Upgrades: proposing{r}, Commands: reading{r},
		},
	})
}

// proposing is the keeper of upgrades as the intake sees it.
type proposing struct{ *Reconciler }

// Ask asks for a look at the upgrades of a repository.
func (p proposing) Ask(repo string) { p.upgrades.Ask(repo) }

// Moved asks for a look at the upgrades after one of our pull requests has moved.
func (p proposing) Moved(pr holdfast.PullRequestRecord) {
	if strings.HasPrefix(pr.Branch, upgrade.Branches) {
		p.upgrades.Ask(pr.Repo)
	}
}

// reading reads commands for the intake.
type reading struct{ *Reconciler }

// Parse returns the commands in a comment.
func (c reading) Parse(comment holdfast.Comment) []holdfast.Command { return c.opts.Commands(comment) }
