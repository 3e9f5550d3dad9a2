package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// Database is where the records are; zero: in SQLite. One that engines could use is refused.
func Database(ctx context.Context, cfg *config.Config, logger *slog.Logger) (postgres.Address, error) {
	c := cfg.Datastore
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
	case cfg.Isolation == string(sandbox.ModeNone):
		logger.Warn("isolation is none, and the database is open to what engines execute", "err", err)
		return address, nil
	default:
		return address, hint.New(
			fmt.Errorf("datastore.url: %w: what a pull request executes could change every record", err),
			"have pg_hba.conf ask for a password (scram-sha-256) from this machine, and write it to datastore.password; "+
				"or, if everything that engines execute is trusted, set isolation: none",
		)
	}
}
