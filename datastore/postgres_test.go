package datastore_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
)

// openPostgres opens a store with a database of its own, in which nothing is.
func openPostgres(t testing.TB) *datastore.Store {
	t.Helper()
	return openAt(t, onPostgres(t))
}

// onPostgres are the options of a store with a database of its own, in which nothing is.
func onPostgres(t testing.TB) datastore.Options {
	t.Helper()
	return optionsOf(t, postgresserver.New(t, emptyPostgres(t)))
}

func optionsOf(t testing.TB, d postgresserver.Database) datastore.Options {
	t.Helper()
	return datastore.Options{
		Path:     filepath.Join(memory.Dir(t), "db", "holdfast.db"),
		Postgres: postgres.Address{URL: d.URL(), Password: d.Password},
	}
}

var emptyTemplate struct {
	sync.Mutex
	name string
}

// emptyPostgres is the database that those of tests are copies of: to make its schema takes
// longer than most of them do. It is made once, with the first test.
func emptyPostgres(t testing.TB) string {
	t.Helper()
	emptyTemplate.Lock()
	defer emptyTemplate.Unlock()
	if emptyTemplate.name != "" {
		return emptyTemplate.name
	}
	d := postgresserver.NewKept(t)
	opts := optionsOf(t, d)
	opts.Keys = testKeys(t, 'k')
	store, err := datastore.Open(t.Context(), opts)
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	emptyTemplate.name = d.Name
	return d.Name
}
