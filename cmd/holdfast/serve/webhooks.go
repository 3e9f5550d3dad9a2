package serve

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server/lobby"
	"github.com/holdfast-dev/holdfast/webhook"
)

func (s *services) webhooks() (*webhook.Handler, error) {
	s.hooks.seen = &recorder{store: s.store, logger: s.logger, waiting: make(chan holdfast.Delivery, deliveriesWaiting)}
	opts := webhook.Options{
		Store: s.store, Enqueue: s.enqueue, Logger: s.logger, Now: s.clock.Now,
		Notify: webhook.Notify{Stored: s.reconciler.CommandStored, Verified: lobby.Known, Answered: s.metrics.Delivered, Delivered: s.hooks.seen.add},
	}
	for _, r := range s.cfg.Repositories {
		if r.Forge == "local" {
			continue
		}
		opts.Repositories = append(opts.Repositories, webhook.Repository{
			Name: r.Name, FullName: r.FullName(), Branch: r.Branch,
			Secret: func() []byte {
				if r.WebhookSecret.IsZero() {
					return nil
				}
				secret, err := r.WebhookSecret.Value()
				if err != nil {
					s.logger.Error("webhook secret was not read", "repo", r.Name, "err", err)
					return nil
				}
				return []byte(secret)
			},
		})
	}
	return webhook.New(opts)
}

func (s *services) enqueue(req holdfast.SourceRequest) {
	if s.tracer != nil {
		req = s.tracer.Delivered(req)
	}
	s.reconciler.Enqueue(req)
}
