package backup

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"path"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// A backup is a tar file, compressed with gzip. Its first entry says what it is, its last one
// what must be in it: without that one it is not complete.
const (
	format       = 1
	aboutFile    = "holdfast-backup.json"
	databaseFile = "holdfast.db"
	blobsFolder  = "blobs"
	keysFolder   = "keys"
	identityFile = "identity"
	manifestFile = "manifest.json"
)

// maxAbout bounds the first entry and maxManifest the last one, which has a line for each blob.
const maxAbout, maxManifest = 1 << 20, 1 << 30

// About is what a backup says of itself.
type About struct {
	Format   int       `json:"format"`
	Version  string    `json:"version"` // of the holdfast that made it
	Schema   int64     `json:"schema"`
	Identity string    `json:"identity"` // of the installation
	MadeAt   time.Time `json:"madeAt"`
	// Bucket is where larger contents are that are not in the backup; empty: they are.
	Bucket string `json:"bucket,omitempty"`
}

// Manifest is what has to be in a backup.
type Manifest struct {
	Records  map[string]int64  `json:"records"` // rows by table
	Blobs    int               `json:"blobs"`
	Bytes    int64             `json:"bytes"` // of the database and the blobs
	HasKey   bool              `json:"hasKey"`
	Missing  []string          `json:"missing,omitempty"` // blobs that records refer to and that were not there
	Digests  map[string]string `json:"sha256"`            // by name in the backup
	ReadAt   time.Time         `json:"readAt"`            // when the records were read
	Restarts int               `json:"restarts"`          // how often they were read again, as a blob was gone
}

// openReadOnly opens a file of SQLite that a server may have open, and takes no lock that it would wait for.
func openReadOnly(file string) (*sql.DB, error) {
	dsn := url.URL{Scheme: "file", Path: file, RawQuery: url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(30000)"}}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// identityOf is the name of the installation that a database belongs to.
func identityOf(ctx context.Context, db *sql.DB) (string, error) {
	var store string
	err := db.QueryRowContext(ctx, `SELECT store FROM identity WHERE id = 1`).Scan(&store)
	if errors.Is(err, sql.ErrNoRows) {
		return "", errors.New("it was never used by a server")
	}
	return store, err
}

// tablesOf are the tables of a database, with those of them that refer to blobs.
func tablesOf(ctx context.Context, db *sql.DB) (all, withBlobs []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT name, EXISTS (SELECT 1 FROM pragma_table_xinfo(t.name) WHERE name = 'inline')
		FROM sqlite_master AS t WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE 'goose!_%' ESCAPE '!' ORDER BY name`)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var has bool
		if err := rows.Scan(&name, &has); err != nil {
			return nil, nil, err
		}
		all = append(all, name)
		if has {
			withBlobs = append(withBlobs, name)
		}
	}
	return all, withBlobs, rows.Err()
}

// safe refuses names that are not those of files below a folder.
func safe(name string) error {
	if name == "" || name != path.Clean(name) || path.IsAbs(name) || name == ".." || len(name) > 2 && name[:3] == "../" {
		return fmt.Errorf("the name %q is not one of a file in a backup", name)
	}
	return nil
}

func sumText(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

func newSum() hash.Hash { return sha256.New() }
