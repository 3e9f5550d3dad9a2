// What SQLite has deleted or replaced stays in its file until other content takes its place.

package datastore

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// wipeSlack is what has to stay free besides what a rewrite takes.
	wipeSlack = 64 << 20
	// wipeLarge is the size from which on a rewrite is announced as one that takes minutes.
	wipeLarge = 1 << 30
)

// wipe rewrites the database at path, once after an upgrade from a version that wrote in
// plain text what is encrypted by now: its pages would keep that. Nothing is lost if it is
// cut short, or if there is no room: the next start tries again.
func (s *rebuilder) wipe(ctx context.Context, path string) error {
	var wanted int
	var size int64
	err := s.db.reader().row(ctx, `SELECT (SELECT COUNT(*) FROM rebuilds WHERE name = 'pages'),
		(SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)`).Scan(&wanted, &size)
	if err != nil {
		return fmt.Errorf("measure the database: %w", err)
	}
	if wanted == 0 {
		return nil
	}
	const kept = "the database was not rewritten, and keeps unencrypted what former versions have deleted; the next start tries again"
	if err := s.roomToWipe(path, size); err != nil {
		s.log.WarnContext(ctx, kept, "size", size, "err", err)
		return nil
	}
	detail := "what former versions have deleted is not kept unencrypted"
	if size >= wipeLarge {
		detail += "; the database is large: this may take minutes"
	}
	began := s.now()
	s.log.InfoContext(ctx, "rewriting the database", "size", size, "detail", detail)
	if err := s.db.rewrite(ctx); ctx.Err() != nil {
		return fmt.Errorf("rewrite the database: %w", cmp.Or(err, ctx.Err()))
	} else if err != nil {
		s.log.WarnContext(ctx, kept, "size", size, "err", err)
		return nil
	}
	s.log.InfoContext(ctx, "rewrote the database", "duration", s.now().Sub(began))
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `DELETE FROM rebuilds WHERE name = 'pages'`)
		return err
	})
}

// roomToWipe is an error if there is no room for a rewrite of a database of some size: next
// to it for the log of what is written, and for a copy in SQLite's folder for temporary
// files, which may be the same one.
func (s *rebuilder) roomToWipe(path string, size int64) error {
	for dir, needs := range map[string]int64{filepath.Dir(path): 2*size + wipeSlack, temporaryDir(): size + wipeSlack} {
		if has, known := s.free(dir); known && has < needs {
			return fmt.Errorf("%s has %d MiB of free space, and %d MiB are needed", dir, has>>20, needs>>20)
		}
	}
	return nil
}

// temporaryDir is where SQLite has its temporary files
// (https://sqlite.org/tempfiles.html#temporary_file_storage_locations).
func temporaryDir() string {
	for _, dir := range []string{os.Getenv("SQLITE_TMPDIR"), os.Getenv("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp"} {
		if info, err := os.Stat(dir); dir != "" && err == nil && info.IsDir() {
			return dir
		}
	}
	return "."
}
