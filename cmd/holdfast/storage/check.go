package storage

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/verify"
)

func newCheckCommand(a *cli.App) *cobra.Command {
	var path, format string
	var deep bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check that every blob that a record refers to exists and is intact",
		Long: `Compare the records with the blobs (larger plans, bundles, states), in SQLite or
PostgreSQL, in files or an object store. Nothing is written, and the server can run at
the same time.

The exit code is 1 if a blob is missing, damaged, or encrypted with a key that is not
configured. Orphaned blobs, to which no record refers, are only listed: the server
removes them.`,
		Example: "  holdfast datastore check --deep",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := load(path)
			if err != nil {
				return err
			}
			result, err := check(c.Context(), a, cfg, deep)
			if err != nil {
				return err
			}
			if err := a.Print(format, result, func() string { return checked(a, result) }); err != nil {
				return err
			}
			if !result.OK() {
				return &cli.ExitCodeError{Code: cli.ExitError}
			}
			return nil
		},
	}
	addConfigFlag(c, &path)
	c.Flags().BoolVar(&deep, "deep", false, "read and decrypt everything, instead of comparing sizes only")
	cli.AddFormatFlag(c, &format)
	return c
}

func check(ctx context.Context, a *cli.App, cfg *config.Config, deep bool) (verify.Result, error) {
	keys, err := serve.Keyring(cfg)
	if err != nil {
		return verify.Result{}, err
	}
	logger := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	address, err := serve.Database(ctx, cfg, logger)
	if err != nil {
		return verify.Result{}, err
	}
	blobs := serve.Blobs(cfg)
	if blobs.URL == "" {
		blobs = objects.Options{Dir: filepath.Join(filepath.Dir(serve.Records(cfg)), "blobs")}
	}
	return verify.Check(ctx, verify.Options{
		Path: serve.Records(cfg), Postgres: address, Blobs: blobs, Keys: keys, Deep: deep,
		Progress: progress(a.Err, a.Now), Logger: logger, Now: a.Now,
	})
}

func checked(a *cli.App, r verify.Result) string {
	var b strings.Builder
	if len(r.Problems) > 0 {
		var rows [][]table.Cell
		for _, p := range r.Problems {
			rows = append(rows, table.Cells(p.Problem, p.Blob, p.Record, p.Detail))
		}
		b.WriteString(a.Table(table.Columns("PROBLEM", "BLOB", "RECORD", "DETAIL"), rows) + "\n")
	}
	total := 0
	for _, n := range r.Counts {
		total += n
	}
	if total > len(r.Problems) {
		fmt.Fprintf(&b, "The first %d of %d are shown.\n", len(r.Problems), total)
	}
	fmt.Fprintf(&b, "%d blobs (%s), %d records refer to blobs: %d missing, %d damaged, %d unreadable, %d orphaned.\n",
		r.Blobs, bytes(r.Bytes), r.Records, r.Counts[verify.Missing], r.Counts[verify.Damaged], r.Counts[verify.Unreadable], r.Counts[verify.Orphaned])
	if r.Deep {
		fmt.Fprintf(&b, "Decrypted: %s of blobs, and %d contents that are kept with their records.\n", bytes(r.Decrypted), r.Inline)
	} else {
		b.WriteString("Only existence and size were checked; --deep decrypts everything.\n")
	}
	return b.String()
}
