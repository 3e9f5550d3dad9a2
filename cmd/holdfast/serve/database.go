package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// database is where the records are; zero: in SQLite. One that engines could use is refused.
func (s *services) database(ctx context.Context) (postgres.Address, error) {
	c := s.cfg.Datastore
	if c.URL == "" {
		return postgres.Address{}, nil
	}
	address := postgres.Address{URL: c.URL}
	if !c.Password.IsZero() {
		address.Password = c.Password.Value
	}
	err := postgres.Guarded(ctx, address)
	switch {
	case err == nil:
		return address, nil
	case !errors.Is(err, postgres.ErrOpen):
		return address, fmt.Errorf("datastore.url: %w", err)
	case s.cfg.Isolation == string(sandbox.ModeNone):
		s.logger.Warn("isolation is none, and the database is open to what engines execute", "err", err)
		return address, nil
	default:
		return address, hint.New(
			fmt.Errorf("datastore.url: %w: what a pull request executes could change every record", err),
			"have pg_hba.conf ask for a password (scram-sha-256) from this machine, and write it to datastore.password; "+
				"or, if everything that engines execute is trusted, set isolation: none",
		)
	}
}
