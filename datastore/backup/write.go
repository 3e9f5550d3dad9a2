package backup

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/datastore/migrations"
)

// Source is what is backed up. All is required unless noted.
type Source struct {
	Path     string   // the SQLite file
	Identity string   // the file with the server's name; it need not exist
	Bucket   string   // where larger contents are, for people; empty: in the folder "blobs" next to Path
	KeyFiles []string // that are part of the backup; nil: none is
	TempDir  string   // where a copy of the database has room
	Version  string   // of this holdfast
	// Progress is called now and then. Nil: nobody wants to know.
	Progress func(doing string, done, total int64)
	Now      func() time.Time // nil means time.Now
}

// maxReads is how often the records are read: again if a blob was removed before it was read.
const maxReads = 10

// Write writes a backup to w.
//
// The records are those of one moment: SQLite copies them in one read transaction. Blobs never change,
// are written before the record that refers to them, and are removed after it: at that moment each of
// them is there. One that is gone when it is read was removed with its record since; the records
// are then read again, and only the blobs that are new are read. The records that were read last are
// in the backup, and with them each blob that they refer to.
func Write(ctx context.Context, w io.Writer, source Source) (About, Manifest, error) {
	source.Progress = orSilent(source.Progress)
	if source.Now == nil {
		source.Now = time.Now
	}
	b := &writer{
		source: source, blobs: filepath.Join(filepath.Dir(source.Path), blobsFolder),
		manifest: Manifest{Digests: make(map[string]string)},
	}
	err := b.write(ctx, w)
	if b.copied != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(b.copied)))
	}
	if err != nil {
		return About{}, Manifest{}, fmt.Errorf("back up %s: %w", source.Path, err)
	}
	return b.about, b.manifest, nil
}

// orSilent is a progress that can be called.
func orSilent(progress func(string, int64, int64)) func(string, int64, int64) {
	if progress == nil {
		return func(string, int64, int64) {}
	}
	return progress
}

type writer struct {
	source   Source
	blobs    string // their folder
	copied   string // the copy of the database
	tar      *tar.Writer
	about    About
	manifest Manifest
}

func (b *writer) write(ctx context.Context, w io.Writer) error {
	above, err := filepath.Abs(b.source.TempDir) // SQLite takes a relative path for something else
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(above, ".holdfast-backup-")
	if err != nil {
		return err
	}
	b.copied = filepath.Join(dir, databaseFile)
	zipped, err := gzip.NewWriterLevel(w, gzip.BestSpeed) // most of it is ciphertext
	if err != nil {
		return err
	}
	b.tar = tar.NewWriter(zipped)
	if err := b.writeRecords(ctx); err != nil {
		return err
	}
	if err := b.writeKeys(ctx); err != nil {
		return err
	}
	if err := b.writeJSON(manifestFile, b.manifest); err != nil {
		return err
	}
	return errors.Join(b.tar.Close(), zipped.Close())
}

// writeRecords writes the blobs, and then the records that refer to them.
func (b *writer) writeRecords(ctx context.Context) error {
	var gone []string
	for read := range maxReads {
		if err := b.copyDatabase(ctx); err != nil {
			return fmt.Errorf("read the records: %w", err)
		}
		before := gone
		var err error
		if gone, err = b.readCopy(ctx, read == 0); err != nil {
			return err
		}
		b.manifest.Restarts = read
		// What was gone before and is referred to still is missing, and not removed.
		if lost := slices.DeleteFunc(slices.Clone(gone), func(key string) bool { return !slices.Contains(before, key) }); len(lost) == len(gone) {
			b.manifest.Missing = lost
			break
		}
		if read == maxReads-1 {
			return fmt.Errorf("blobs were removed each of the %d times that the records were read, such as %s: try again later", maxReads, gone[0])
		}
	}
	return b.writeFile(ctx, databaseFile, b.copied, "write the database")
}

// readCopy writes the blobs that the copied records refer to, and returns those that are gone.
func (b *writer) readCopy(ctx context.Context, first bool) (gone []string, err error) {
	db, err := openReadOnly(b.copied)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if first {
		if err := b.writeAbout(ctx, db); err != nil {
			return nil, err
		}
	}
	all, withBlobs, err := tablesOf(ctx, db)
	if err != nil {
		return nil, err
	}
	b.manifest.Records = make(map[string]int64, len(all))
	for _, table := range all {
		var rows int64
		if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table).Scan(&rows); err != nil {
			return nil, err
		}
		b.manifest.Records[table] = rows
	}
	if b.source.Bucket != "" {
		return nil, nil
	}
	for _, table := range withBlobs {
		some, err := b.writeBlobs(ctx, db, table)
		if err != nil {
			return nil, err
		}
		gone = append(gone, some...)
	}
	return gone, nil
}

// copyDatabase copies the records. VACUUM INTO reads them in one transaction, for which a server
// that writes does not wait, and leaves out what pages that are not in use still contain.
func (b *writer) copyDatabase(ctx context.Context) error {
	if err := os.Remove(b.copied); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := openReadOnly(b.source.Path)
	if err != nil {
		return err
	}
	defer db.Close()
	b.manifest.ReadAt = b.source.Now().UTC()
	done := make(chan struct{})
	go b.watchCopy(done)
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, b.copied)
	close(done)
	return err
}

// watchCopy reports how far the copy is: a copy is about as large as what is copied.
func (b *writer) watchCopy(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		size := func(path string) int64 {
			info, err := os.Stat(path)
			if err != nil {
				return 0
			}
			return info.Size()
		}
		b.source.Progress("read the records (bytes)", size(b.copied), size(b.source.Path))
	}
}

func (b *writer) writeAbout(ctx context.Context, db *sql.DB) error {
	store, err := identityOf(ctx, db)
	if err != nil {
		return err
	}
	schema, err := migrations.Version(ctx, db)
	if err != nil {
		return err
	}
	b.about = About{
		Format: format, Version: b.source.Version, Schema: schema, Identity: store, MadeAt: b.source.Now().UTC(), Bucket: b.source.Bucket,
	}
	return b.writeJSON(aboutFile, b.about)
}

// writeBlobs writes the blobs of a table that are not in the backup yet.
func (b *writer) writeBlobs(ctx context.Context, db *sql.DB, table string) (gone []string, err error) {
	var total int64
	if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table+` WHERE inline IS NULL`).Scan(&total); err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT blob FROM `+table+` WHERE inline IS NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for done := int64(1); rows.Next(); done++ {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		if err := safe(key); err != nil {
			return nil, err
		}
		name := blobsFolder + "/" + key
		if _, has := b.manifest.Digests[name]; has {
			continue
		}
		err := b.writeFile(ctx, name, filepath.Join(b.blobs, filepath.FromSlash(key)), "")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			gone = append(gone, key)
			continue
		case err != nil:
			return nil, err
		}
		b.manifest.Blobs++
		b.source.Progress("write blobs of "+table, done, total)
	}
	return gone, rows.Err()
}

// writeKeys writes what is small: the server's name and, if they are wanted, the keys.
func (b *writer) writeKeys(ctx context.Context) error {
	if err := b.writeFile(ctx, identityFile, b.source.Identity, ""); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i, file := range b.source.KeyFiles {
		if err := b.writeFile(ctx, fmt.Sprintf("%s/%d", keysFolder, i), file, ""); err != nil {
			return err
		}
	}
	b.manifest.HasKey = len(b.source.KeyFiles) > 0
	return nil
}

// writeFile writes a file as it is when it is opened. One that is not there is an fs.ErrNotExist, and
// nothing is written.
func (b *writer) writeFile(ctx context.Context, name, path, doing string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := b.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime().Truncate(time.Second)}); err != nil {
		return err
	}
	sum := newSum()
	to := io.MultiWriter(b.tar, sum)
	for written := int64(0); written < info.Size(); {
		n, err := io.CopyN(to, f, min(info.Size()-written, 16<<20))
		if err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(doing, "read "+path), err)
		}
		if written += n; doing != "" {
			b.source.Progress(doing+" (bytes)", written, info.Size())
		}
	}
	b.manifest.Digests[name] = sumText(sum)
	b.manifest.Bytes += info.Size()
	return nil
}

func (b *writer) writeJSON(name string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: b.source.Now().Truncate(time.Second)}
	if err := b.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err = b.tar.Write(data)
	return err
}

// Total is how many records there are in some tables.
func (m Manifest) Total(tables ...string) int64 {
	var n int64
	for _, table := range tables {
		n += m.Records[table]
	}
	return n
}
