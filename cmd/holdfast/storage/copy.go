package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/datastore/transfer"
)

func newCopyCommand(a *cli.App) *cobra.Command {
	var from, to, format string
	c := &cobra.Command{
		Use:   "copy --to CONFIG",
		Short: "Copy all records from SQLite to PostgreSQL",
		Long: `Copy all records of an installation from SQLite to the PostgreSQL database that
datastore.url of a configuration names, while the server is stopped. The database
must be empty.

All records are copied in one transaction, read back and compared. Then the data folder
is bound to the new database, and the SQLite file is renamed, so that no server starts
on it. If the copy is interrupted, the source is unchanged: repeat the command.

Larger plans, bundles and states are not copied: they stay in datastore.blobs. Copying
from PostgreSQL to SQLite is not possible.`,
		Example: `  holdfast datastore copy --to holdfast.yaml
  holdfast datastore copy --from sqlite:/var/lib/holdfast/db/holdfast.db --to new.yaml`,
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			result, err := copyRecords(c.Context(), a, from, to)
			if err != nil {
				return err
			}
			return a.Print(format, result, func() string { return copied(a, result) })
		},
	}
	c.Flags().StringVar(&from, "from", "", "configuration file with the current dataDir, or sqlite:PATH (default: the SQLite file in dataDir of --to)")
	c.Flags().StringVar(&to, "to", "holdfast.yaml", "configuration file with datastore.url and datastore.password of the new database")
	cli.AddFormatFlag(c, &format)
	return c
}

func copyRecords(ctx context.Context, a *cli.App, from, to string) (transfer.Result, error) {
	if strings.Contains(to, "://") {
		return transfer.Result{}, hint.New(
			cli.UsageError("--to %q: want a configuration file", to),
			"write the address to datastore.url of a holdfast.yaml, and where its password is to datastore.password",
		)
	}
	cfg, err := load(to)
	if err != nil {
		return transfer.Result{}, err
	}
	if cfg.Datastore.URL == "" {
		return transfer.Result{}, hint.New(
			fmt.Errorf("%s does not say where to copy to", to),
			"set datastore.url to postgres://USER@HOST:PORT/DATABASE, and datastore.password",
		)
	}
	if err := checkSource(from, cfg); err != nil {
		return transfer.Result{}, err
	}
	keys, err := serve.Keyring(cfg)
	if err != nil {
		return transfer.Result{}, err
	}
	logger := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	address, err := serve.Database(ctx, cfg, logger)
	if err != nil {
		return transfer.Result{}, err
	}
	result, err := transfer.Copy(ctx, transfer.Options{
		Path: serve.Records(cfg), To: address, Keys: keys, Progress: progress(a.Err, a.Now), Logger: logger, Now: a.Now,
	})
	return result, withHint(err)
}

// checkSource refuses a source that is not in the data folder of the target: what else is there
// goes with the records.
func checkSource(from string, to *config.Config) error {
	path, isPath := strings.CutPrefix(from, "sqlite:")
	switch {
	case from == "":
		return nil
	case !isPath && strings.Contains(from, "://"):
		return cli.UsageError("--from %q: want a configuration file, or sqlite:PATH", from)
	case !isPath:
		cfg, err := load(from)
		if err != nil {
			return err
		}
		if cfg.Datastore.URL != "" {
			return fmt.Errorf("the records of %s are in PostgreSQL already: only those in SQLite can be copied", from)
		}
		if cfg.Datastore.Blobs.URL != to.Datastore.Blobs.URL {
			return hint.New(errors.New("datastore.blobs.url differs between --from and --to"),
				"copy the records first and the blobs after that, as docs/stores.md says")
		}
		path = serve.Records(cfg)
	}
	source, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the source: %w", err)
	}
	if own, err := os.Stat(serve.Records(to)); err != nil || !os.SameFile(source, own) {
		return hint.New(
			fmt.Errorf("%s is not in the data folder of --to, %s", path, to.DataDir),
			"blobs, the key and what agents keep are in the data folder: use the same dataDir, or copy the whole folder there first",
		)
	}
	return nil
}

func withHint(err error) error {
	switch {
	case errors.Is(err, transfer.ErrNotEmpty):
		return hint.New(err, "drop and create the database, or name another one")
	case errors.Is(err, transfer.ErrOldSource):
		return hint.New(err, "start the server of this version on SQLite once, wait until /readyz is 200 and no plans are running, stop it, and copy then")
	case errors.Is(err, holdfast.ErrLocked):
		return hint.New(err, "stop the server, and copy then")
	}
	return err
}

func copied(a *cli.App, result transfer.Result) string {
	var rows [][]table.Cell
	var total int64
	for _, t := range result.Tables {
		total += t.Rows
		if t.Rows > 0 {
			rows = append(rows, table.Cells(t.Name, fmt.Sprint(t.Rows), t.Digest))
		}
	}
	text := a.Table(table.Columns("TABLE", "ROWS", "DIGEST"), rows)
	if result.Resumed {
		text += "\nAn earlier copy had written all of it.\n"
	}
	return text + fmt.Sprintf("\n%d records of %d tables are in PostgreSQL, the same as in SQLite.\nThe SQLite file is now %s; remove it when the server works.\n",
		total, len(result.Tables), result.Kept)
}
