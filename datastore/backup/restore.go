package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/datastore/home"
	"github.com/holdfast-dev/holdfast/datastore/migrations"
	"github.com/holdfast-dev/holdfast/internal/durable"
)

// Target is where a backup is put back. All is required unless noted.
type Target struct {
	Path     string // the SQLite file: in its folder there are no records yet
	Identity string // the file with the server's name
	KeyFile  string // where a key that is in the backup goes
	// Check looks at the restored records before they are in place: whether the keys fit.
	// Nil: nobody does.
	Check func(Proof) error
	// Progress is called now and then. Nil: nobody wants to know.
	Progress func(doing string, done, total int64)
	Now      func() time.Time // nil means time.Now
}

// Proof is what keys can be tried on.
type Proof struct {
	Identity string   // of the installation
	Sealed   []byte   // the same, encrypted
	KeyFiles []string // keys that are in the backup, the current one first: there for as long as Check runs
}

// Restored says what was put back.
type Restored struct {
	About    About    `json:"about"`
	Manifest Manifest `json:"manifest"`
	KeyFiles []string `json:"keyFiles"` // that were written
	Aside    string   `json:"aside"`    // where blobs are that were in the folder; empty: none were
}

// fencesAhead is what the counter of fences is raised by. Agents may hold fences that were given
// after the backup was made, and a fence is never given twice.
const fencesAhead = 1_000_000

// Restore puts a backup back. Nothing is in place before all of it was read and is what was written.
// It is a holdfast.ErrLocked if a server has the folder.
func Restore(ctx context.Context, from io.Reader, target Target) (Restored, error) {
	target.Progress = orSilent(target.Progress)
	if target.Now == nil {
		target.Now = time.Now
	}
	r := &restorer{target: target, digests: make(map[string]string)}
	if err := r.restore(ctx, from); err != nil {
		return Restored{}, fmt.Errorf("restore to %s: %w", filepath.Dir(target.Path), err)
	}
	return r.restored, nil
}

type restorer struct {
	target   Target
	staging  string // a folder next to the records, on the same disk
	digests  map[string]string
	read     int64 // bytes
	restored Restored
}

func (r *restorer) restore(ctx context.Context, from io.Reader) (err error) {
	if err := r.refuseRecords(); err != nil {
		return err
	}
	folder, err := home.OpenSQLite(r.target.Path, r.target.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	r.target.Path = folder.Path()
	if err := r.refuseRecords(); err != nil { // somebody was faster
		return err
	}
	if err := removeStaged(filepath.Dir(r.target.Path)); err != nil {
		return err
	}
	if r.staging, err = os.MkdirTemp(filepath.Dir(r.target.Path), stagingPrefix); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.staging)) }()
	if err := r.extract(ctx, from); err != nil {
		return err
	}
	if err := r.verify(); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	return r.place()
}

// stagingPrefix is what the folders are called in which backups are unpacked.
const stagingPrefix = ".restore-"

// removeStaged removes what restores have left that were killed. The folder is ours: none is under way.
func removeStaged(folder string) error {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), stagingPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, entry.Name())))
		}
	}
	return err
}

// refuseRecords is an error if the folder has records.
func (r *restorer) refuseRecords() error {
	info, err := os.Stat(r.target.Path)
	if err == nil && info.Size() > 0 {
		return errors.New("the folder has records already: name another one, or move its folder db away")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// extract writes all files of the backup to the staging folder.
func (r *restorer) extract(ctx context.Context, from io.Reader) error {
	zipped, err := gzip.NewReader(from)
	if err != nil {
		return fmt.Errorf("it is not a backup: %w", err)
	}
	entries := tar.NewReader(zipped)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF) && r.restored.Manifest.Digests == nil:
			return errors.New("the backup is not complete: its end is missing")
		case errors.Is(err, io.EOF):
			_, err := io.Copy(io.Discard, zipped) // and with it the checksum of all
			return err
		case err != nil:
			return fmt.Errorf("read the backup, which is damaged or not complete: %w", err)
		}
		if err := r.extractOne(header, entries); err != nil {
			return err
		}
	}
}

func (r *restorer) extractOne(header *tar.Header, from io.Reader) error {
	if err := safe(header.Name); err != nil {
		return err
	}
	if r.restored.About.Format == 0 && header.Name != aboutFile {
		return errors.New("it is not a backup of Holdfast")
	}
	if header.Typeflag != tar.TypeReg {
		return fmt.Errorf("%s is not a file", header.Name)
	}
	switch header.Name {
	case aboutFile:
		return r.readAbout(from)
	case manifestFile:
		return readJSON(from, maxManifest, &r.restored.Manifest)
	}
	path := filepath.Join(r.staging, filepath.FromSlash(header.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := newSum()
	n, err := io.Copy(io.MultiWriter(f, sum), from)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read %s of the backup, which is damaged or not complete: %w", header.Name, err)
	}
	r.digests[header.Name] = sumText(sum)
	r.read += n
	r.target.Progress("read the backup (bytes)", r.read, 0)
	return nil
}

func (r *restorer) readAbout(from io.Reader) error {
	about := &r.restored.About
	if err := readJSON(from, maxAbout, about); err != nil {
		return err
	}
	latest, err := migrations.SQLite.Latest()
	switch {
	case err != nil:
		return err
	case about.Format != format:
		return fmt.Errorf("the backup has format %d, and this holdfast reads %d: use the version that made it, %s, or a newer one", about.Format, format, about.Version)
	case about.Schema > latest:
		return fmt.Errorf("the backup has schema version %d, and this holdfast knows %d: use the version that made it, %s, or a newer one", about.Schema, latest, about.Version)
	}
	return nil
}

func readJSON(from io.Reader, most int64, into any) error {
	data, err := io.ReadAll(io.LimitReader(from, most))
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(data)).Decode(into)
	}
	if err != nil {
		return fmt.Errorf("read what the backup says of itself: %w", err)
	}
	return nil
}

// verify is an error unless what was read is what was written, and all of it.
func (r *restorer) verify() error {
	want := r.restored.Manifest.Digests
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch got, has := r.digests[name]; {
		case !has:
			return fmt.Errorf("the backup lacks %s", name)
		case got != want[name]:
			return fmt.Errorf("%s in the backup is damaged: its digest is %s, and was %s", name, got, want[name])
		}
	}
	if len(r.digests) != len(want) {
		return errors.New("the backup has files that were not written to it")
	}
	if _, has := want[databaseFile]; !has {
		return errors.New("the backup has no records")
	}
	return nil
}

// prepare makes the staged records what a server begins with.
func (r *restorer) prepare(ctx context.Context) error {
	dsn := url.URL{Scheme: "file", Path: filepath.Join(r.staging, databaseFile)}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return err
	}
	store, err := identityOf(ctx, db)
	if err == nil && store != r.restored.About.Identity {
		err = fmt.Errorf("its records are those of %s, and it says that it is of %s", store, r.restored.About.Identity)
	}
	if err == nil && r.target.Check != nil {
		err = r.check(ctx, db, store)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, `UPDATE counters SET value = value + ? WHERE name = 'fence'`, fencesAhead)
	}
	if err == nil { // the server suspends everything when it finds this
		_, err = db.ExecContext(ctx, `INSERT INTO counters (name, value) VALUES ('restored', 1) ON CONFLICT (name) DO NOTHING`)
	}
	return errors.Join(err, db.Close())
}

func (r *restorer) check(ctx context.Context, db *sql.DB, store string) (err error) {
	proof := Proof{Identity: store}
	if err := db.QueryRowContext(ctx, `SELECT doc FROM identity WHERE id = 1`).Scan(&proof.Sealed); err != nil {
		return err
	}
	if proof.KeyFiles, err = keysIn(r.staging); err != nil {
		return err
	}
	return r.target.Check(proof)
}

func keysIn(staging string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(staging, keysFolder, "*"))
	slices.SortFunc(found, func(a, b string) int { // 10 comes after 9
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return found, err
}

// place gives everything its name, the records last: until then the folder has none, and the restore
// can be begun again.
func (r *restorer) place() error {
	folder := filepath.Dir(r.target.Path)
	unix.Sync() // a name must not be durable before what it names
	if err := r.placeBlobs(folder); err != nil {
		return err
	}
	if err := r.placeKeys(); err != nil {
		return err
	}
	staged := filepath.Join(r.staging, identityFile)
	if _, err := os.Stat(staged); err == nil {
		if err := os.Rename(staged, r.target.Identity); err != nil {
			return err
		}
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(r.target.Path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(filepath.Join(r.staging, databaseFile), r.target.Path); err != nil {
		return err
	}
	return durable.SyncDir(folder)
}

// placeBlobs keeps blobs that are in the folder, under another name: their records may be
// what was lost.
func (r *restorer) placeBlobs(folder string) error {
	blobs, staged := filepath.Join(folder, blobsFolder), filepath.Join(r.staging, blobsFolder)
	if err := os.Remove(blobs); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is not empty
		r.restored.Aside = blobs + ".before-restore-" + r.target.Now().UTC().Format("20060102T150405Z")
		if err := os.Rename(blobs, r.restored.Aside); err != nil {
			return err
		}
	}
	err := os.Rename(staged, blobs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// placeKeys writes the keys of the backup, unless there is one. Check has found that it fits.
func (r *restorer) placeKeys() error {
	staged, err := keysIn(r.staging)
	if err != nil {
		return err
	}
	for i, file := range staged {
		to := r.target.KeyFile
		if i > 0 {
			to = fmt.Sprintf("%s.old-%d", r.target.KeyFile, i)
		}
		if _, err := os.Stat(to); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			return err
		}
		r.restored.KeyFiles = append(r.restored.KeyFiles, to)
	}
	return nil
}
