package datastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/durable"
)

// A data folder remembers that its records are in a database elsewhere, and in which: a start
// without the setting would begin again, and plan and apply what nobody asked for.

// markFile is next to where the SQLite file would be. It has the identity of the database.
const markFile = "postgres"

func rememberedDatabase(path string) (identity string, err error) {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(path), markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("read which database the records are in: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// rememberDatabase has the data folder remember a database, unless its records are elsewhere.
func (s *Store) rememberDatabase(ctx context.Context, path, identity string) error {
	remembered, err := rememberedDatabase(path)
	switch {
	case err != nil || remembered == identity:
		return err
	case remembered != "":
		return fmt.Errorf("the records of this data folder are in the database with the identity %s, and this one has %s: "+
			"look at datastore.url, or start with another data folder", remembered, identity)
	}
	var runs int
	if err := s.db.reader().row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM runs LIMIT 1) AS few`).Scan(&runs); err != nil {
		return fmt.Errorf("look for runs: %w", err)
	}
	if runs > 0 {
		s.log.WarnContext(ctx, "the database was used with another data folder: larger plans, bundles and states that are still there are missing here",
			"path", filepath.Dir(path))
	}
	if err := writeMark(filepath.Join(filepath.Dir(path), markFile), identity); err != nil {
		return fmt.Errorf("remember which database the records are in: %w", err)
	}
	return nil
}

func writeMark(path, identity string) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, identity)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// noSQLite is an error if there are records in SQLite, and the data folder remembers none
// elsewhere: they would be left behind.
func noSQLite(path, remembered string) error {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 || remembered != "" {
		return nil
	}
	return fmt.Errorf("this data folder has records in SQLite, in %s, which would be left behind: remove datastore.url "+
		"to keep using them, or start with another data folder, or move the files of db/ away to begin again", path)
}

// fileNumber is what the system calls a file, whatever its name; empty if that is not known.
func fileNumber(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(stat.Dev, " ", stat.Ino)
}
