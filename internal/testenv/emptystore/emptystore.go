// Package emptystore has the databases of stores in which nothing is, for tests: to bring
// the schema of a new one up to date costs more than most tests do.
package emptystore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/datastore"
)

// Database is the database of a store in which nothing is.
type Database struct {
	data func() ([]byte, error)
}

// New returns the database of a store that is opened with what options returns for its
// path. It is made once, when it is first written.
func New(options func(path string) datastore.Options) *Database {
	return &Database{sync.OnceValues(func() ([]byte, error) { return made(options) })}
}

// Write makes a file of it. A store is opened there with the same keys.
func (d *Database) Write(t testing.TB, path string) {
	t.Helper()
	data, err := d.data()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func made(options func(path string) datastore.Options) ([]byte, error) {
	dir, err := os.MkdirTemp("", "holdfast-empty-store-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "holdfast.db")
	store, err := datastore.Open(context.Background(), options(path))
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("make an empty store: %w", err)
	}
	return os.ReadFile(path)
}
