package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/datastore/backup"
)

// NewRestoreCommand returns the command that puts a backup back.
func NewRestoreCommand(a *cli.App) *cobra.Command {
	var path, dataDir string
	c := &cobra.Command{
		Use:   "restore FILE|-",
		Short: "Restore a backup to an empty data folder",
		Long: `Restore a backup of holdfast backup to a data folder without records, in which no server
runs. The complete backup is read and compared with its digests before anything is put
in place.

First copy the encryption key to encryption.keyFile, unless the backup contains it. The
restored server does not know what has changed since the backup: docs/backup.md
describes what to check before it applies anything.`,
		Example: "  holdfast restore /backup/holdfast.tar.gz",
		Args:    cli.Exactly(1, "a file's name, or - for standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := load(path)
			if err != nil {
				return err
			}
			if dataDir != "" {
				if err := moveTo(cfg, dataDir); err != nil {
					return err
				}
			}
			return restore(c.Context(), a, cfg, args[0])
		},
	}
	addConfigFlag(c, &path)
	c.Flags().StringVar(&dataDir, "data-dir", "", "the folder to restore to (default: dataDir of the configuration)")
	return c
}

// moveTo makes a configuration use another data folder.
func moveTo(cfg *config.Config, dataDir string) error {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return err
	}
	if cfg.Encryption.KeyFile == filepath.Join(cfg.DataDir, "key") { // where it is by default
		cfg.Encryption.KeyFile = filepath.Join(abs, "key")
	}
	cfg.DataDir = abs
	return nil
}

func restore(ctx context.Context, a *cli.App, cfg *config.Config, name string) error {
	if cfg.Datastore.URL != "" {
		return hint.New(errors.New("the configuration has its records in PostgreSQL, and a backup is of SQLite"),
			"restore with a configuration without datastore.url; holdfast datastore copy moves the records then")
	}
	from, err := openBackup(a, name)
	if err != nil {
		return err
	}
	defer from.Close()
	known := false
	restored, err := backup.Restore(ctx, from, backup.Target{
		Path: serve.Records(cfg), Identity: serve.Identity(cfg), KeyFile: cfg.Encryption.KeyFile,
		Check:    func(proof backup.Proof) (err error) { known, err = checkKeys(cfg, proof); return err },
		Progress: progress(a.Err, a.Now), Now: a.Now,
	})
	switch {
	case errors.Is(err, holdfast.ErrLocked):
		return hint.New(err, "stop the server, or name another folder with --data-dir")
	case err != nil:
		return err
	}
	fmt.Fprint(a.Out, putBack(cfg, restored, known))
	return nil
}

// checkKeys reports whether there are keys, and refuses those of another installation.
func checkKeys(cfg *config.Config, proof backup.Proof) (bool, error) {
	files := keyFiles(cfg)
	if len(files) == 0 {
		files = proof.KeyFiles
	}
	if len(files) == 0 {
		return false, nil
	}
	with := *cfg
	with.Encryption.KeyFile, with.Encryption.OldKeyFiles = files[0], files[1:]
	keys, err := serve.Keyring(&with)
	if err != nil {
		return false, err
	}
	if _, err := keys.Unseal("identity", proof.Identity, proof.Sealed); err != nil {
		return false, hint.New(
			fmt.Errorf("the backup was made with another key than %s: %w", strings.Join(files, ", "), err),
			"put the key of the installation there, or name it in encryption.keyFile or encryption.oldKeyFiles",
		)
	}
	return true, nil
}

func putBack(cfg *config.Config, r backup.Restored, known bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Restored %s as of %s to %s: %s, %s, %s.\n", r.About.Identity, r.Manifest.ReadAt.Format("2006-01-02 15:04:05 UTC"), cfg.DataDir,
		table.Count(int(r.Manifest.Total("clusters")), "cluster"), table.Count(int(r.Manifest.Total("runs")), "run"), table.Count(r.Manifest.Blobs, "blob"))
	if len(r.KeyFiles) > 0 {
		fmt.Fprintf(&b, "The keys of the backup are in %s.\n", strings.Join(r.KeyFiles, ", "))
		if len(r.KeyFiles) > 1 {
			fmt.Fprintln(&b, "Name all but the first in encryption.oldKeyFiles.")
		}
	} else if !known {
		fmt.Fprintf(&b, "The key is not in the backup: put it at %s before the server starts.\n", cfg.Encryption.KeyFile)
	}
	if r.About.Bucket != "" {
		fmt.Fprintf(&b, "Larger plans, bundles and states are expected in %s.\n", r.About.Bucket)
	}
	if r.Aside != "" {
		fmt.Fprintf(&b, "The blobs that were in the folder are in %s.\n", r.Aside)
	}
	if n := len(r.Manifest.Missing); n > 0 {
		fmt.Fprintf(&b, "%s were missing already when the backup was made.\n", table.Count(n, "blob"))
	}
	fmt.Fprintln(&b, "The server starts with everything suspended: what was applied after the backup is not in the restored states. "+
		"Read docs/backup.md before `holdfast resume --all`.")
	return b.String()
}
