package reconciler

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/intake"
	"github.com/holdfast-dev/holdfast/reconciler/upgrade"
)

func newIntake(r *Reconciler) *intake.Intake {
	sources := intake.Sources{Git: r.opts.Sources.Git, Forges: make(map[string]intake.Forge, len(r.opts.Sources.Forges))}
	for name, forge := range r.opts.Sources.Forges {
		sources.Forges[name] = forge
	}
	for _, repo := range r.opts.Sources.Repositories {
		sources.Repositories = append(sources.Repositories, intake.Repository{
			Name: repo.Name, Branch: repo.Branch, Publishes: len(repo.Templates) > 0, Runners: len(repo.Runners) > 0, Policies: r.opts.Grants.Policies.From(repo.Name),
			Local: repo.Local, Forks: repo.Forks, Drafts: repo.Drafts, Poll: repo.Poll,
		})
	}
	return intake.New(intake.Options{
		Store: r.opts.Store, Sources: sources, Leading: leading{r.leader, r}, Logger: r.opts.Telemetry.Logger, Now: r.opts.Now,
		Rooms: intake.Rooms{
			Catalogs: r.catalogs, Lineage: r.lineage, Records: r.records, Agenda: r.agenda, Places: r.places, Traces: r.traces,
			Looking: &r.looking,
		},
		Peers: intake.Peers{
			Publisher: r.publish, Impacts: r.impacts, Runners: r.runners, Gates: r.gates, Upgrades: proposing{r}, Commands: reading{r},
		},
	})
}

// proposing is the keeper of upgrades as the intake sees it.
type proposing struct{ r *Reconciler }

// Ask asks for a look at the upgrades of a repository.
func (p proposing) Ask(repo string) { p.r.upgrades.Ask(repo) }

// Moved asks for a look at the upgrades after one of our pull requests has moved.
func (p proposing) Moved(pr holdfast.PullRequestRecord) {
	if strings.HasPrefix(pr.Branch, upgrade.Branches) {
		p.r.upgrades.Ask(pr.Repo)
	}
}

// reading reads commands for the intake.
type reading struct{ r *Reconciler }

// Parse returns the commands in a comment.
func (c reading) Parse(comment holdfast.Comment) []holdfast.Command {
	return c.r.opts.Sources.Commands(comment)
}

// CommandStored says that a command is in the store.
func (c reading) CommandStored() { c.r.commands.CommandStored() }
