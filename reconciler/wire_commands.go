package reconciler

import "github.com/holdfast-dev/holdfast/reconciler/commands"

func newCommands(r *Reconciler) (*commands.Operator, *commands.Handler) {
	opts := commands.Options{
		Store: r.opts.Store, Forges: make(map[string]commands.Forge, len(r.opts.Sources.Forges)),
		Lease: r.opts.Limits.Lease, Logger: r.opts.Telemetry.Logger, Now: r.opts.Now,
		Rooms: commands.Rooms{
			Catalogs: r.catalogs, Lineage: r.lineage, Records: r.records, Agenda: r.agenda, Gates: r.gates, Looking: &r.looking,
		},
		Peers: commands.Peers{
			Decider: r.loop, Drift: r.drift, Dispatcher: r.dispatcher, Publisher: r.publish, Intake: r.intake,
			Locker: r.opts.Replica.Locker, Leading: leading{r.leader, r}, Policies: r.policies,
		},
	}
	for name, forge := range r.opts.Sources.Forges {
		if forge != nil {
			opts.Forges[name] = forge
		}
	}
	for _, repo := range r.opts.Sources.Repositories {
		opts.Repositories = append(opts.Repositories, commands.Repository{
			Name: repo.Name, Branch: repo.Branch, Entries: repo.Entries, Samples: repo.Samples,
		})
	}
	operator := commands.NewOperator(opts)
	return operator, commands.NewHandler(opts, operator)
}
