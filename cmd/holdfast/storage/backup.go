package storage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/datastore/backup"
)

// NewBackupCommand returns the command that makes a backup.
func NewBackupCommand(a *cli.App) *cobra.Command {
	var path string
	var withKey bool
	c := &cobra.Command{
		Use:   "backup FILE|-",
		Short: "Write records and blobs to a file, while the server runs",
		Long: `Write everything that a server with SQLite has stored to a file (tar, gzip), or to
standard output: records, plans, bundles and states, as of one moment. The server can
run at the same time, and is not blocked.

The backup is encrypted like the data folder. It does not contain the key: keep the key
elsewhere, because nothing can be read without it. --with-key includes the key.

FILE appears when it is complete, and replaces an older file. The command needs space
for a copy of the database next to FILE.`,
		Example: `  holdfast backup /backup/holdfast.tar.gz
  holdfast backup - | ssh backup 'cat > holdfast.tar.gz'`,
		Args: cli.Exactly(1, "a file's name, or - for standard output"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := load(path)
			if err != nil {
				return err
			}
			return backUp(c.Context(), a, cfg, args[0], withKey)
		},
	}
	addConfigFlag(c, &path)
	c.Flags().BoolVar(&withKey, "with-key", false, "include the encryption keys in the backup: anyone who has it can then read everything")
	return c
}

func backUp(ctx context.Context, a *cli.App, cfg *config.Config, name string, withKey bool) error {
	if cfg.Datastore.URL != "" {
		return hint.New(
			errors.New("the records are in PostgreSQL, which has backups of its own"),
			"run pg_dump first, or use PITR, and copy "+blobsOf(cfg)+" after it; docs/backup.md says how",
		)
	}
	records := serve.Records(cfg)
	if info, err := os.Stat(records); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return fmt.Errorf("there is nothing to back up: %s does not exist or is empty", records)
	} else if err != nil {
		return fmt.Errorf("look at the records: %w", err)
	}
	source := backup.Source{
		Path: records, Identity: serve.Identity(cfg), Bucket: cfg.Datastore.Blobs.URL,
		Version: a.Version, Progress: progress(a.Err, a.Now), Now: a.Now,
	}
	if withKey {
		source.KeyFiles = append([]string{cfg.Encryption.KeyFile}, cfg.Encryption.OldKeyFiles...)
	}
	about, manifest, err := write(ctx, a, name, source)
	if err != nil {
		return err
	}
	fmt.Fprint(a.Err, backedUp(cfg, name, about, manifest))
	if n := len(manifest.Missing); n > 0 {
		return hint.New(
			fmt.Errorf("the backup is complete except for %s that records refer to and that %s missing, such as %s", table.Count(n, "blob"), plural(n), manifest.Missing[0]),
			"see which they are: holdfast datastore check",
		)
	}
	return nil
}

func plural(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// blobsOf is where larger contents are, for people.
func blobsOf(cfg *config.Config) string {
	if cfg.Datastore.Blobs.URL != "" {
		return "the bucket"
	}
	return filepath.Join(cfg.DataDir, "db", "blobs")
}

// write writes a backup to a file or, if its name is "-", to standard output.
func write(ctx context.Context, a *cli.App, name string, source backup.Source) (about backup.About, manifest backup.Manifest, err error) {
	if name != "-" {
		return writeTo(ctx, name, source)
	}
	source.TempDir = os.TempDir()
	out := bufio.NewWriterSize(a.Out, 1<<20)
	about, manifest, err = backup.Write(ctx, out, source)
	return about, manifest, errors.Join(err, out.Flush())
}

func backedUp(cfg *config.Config, name string, about backup.About, m backup.Manifest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Backup of %s, as of %s: %s, %s and %s, %s with %s.\n", about.Identity, m.ReadAt.Format("2006-01-02 15:04:05 UTC"),
		table.Count(int(m.Total("clusters")), "cluster"), table.Count(int(m.Total("runs")), "run"),
		table.Count(int(m.Total("pull_requests")), "pull request"), bytes(m.Bytes), table.Count(m.Blobs, "blob"))
	if about.Bucket != "" {
		fmt.Fprintf(&b, "Larger plans, bundles and states are not in it: they are in %s, which needs a backup of its own, made after this one.\n", about.Bucket)
	}
	if m.HasKey {
		fmt.Fprintf(&b, "WARNING: %s contains the encryption keys. Anyone who has it can read every state and secret.\n", nameOf(name))
	} else {
		fmt.Fprintf(&b, "The encryption key is not in it. Keep a copy of %s in another place: without it the backup cannot be read.\n",
			strings.Join(append([]string{cfg.Encryption.KeyFile}, cfg.Encryption.OldKeyFiles...), ", "))
	}
	return b.String()
}

func nameOf(name string) string {
	if name == "-" {
		return "what was written"
	}
	return name
}

// openBackup opens a file, or standard input.
func openBackup(a *cli.App, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.In), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open the backup: %w", err)
	}
	return f, nil
}

// keyFiles returns the key files that a configuration names and that exist.
func keyFiles(cfg *config.Config) []string {
	return slices.DeleteFunc(append([]string{cfg.Encryption.KeyFile}, cfg.Encryption.OldKeyFiles...), func(path string) bool {
		_, err := os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	})
}
