package datastore_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
)

// TestPasswordChanges: until the new one is known reads say what is wrong, in words and as
// something that passes, and writes wait.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	opts := optionsOf(t, d)
	var old atomic.Bool
	var asked atomic.Int64
	opts.Postgres.Password = func() (string, error) {
		if old.Load() {
			asked.Add(1)
			return "of yesterday", nil
		}
		return d.Password()
	}
	store := must[*datastore.Store](t)(openOptions(t, opts))
	create(t, store, newRun(1))
	old.Store(true)
	datastore.RenewSessions(store)
	_, err := store.Run(t.Context(), newRun(1).ID)
	var fault interface{ DiskProblem() string }
	if !errors.Is(err, holdfast.ErrUnavailable) || !errors.As(err, &fault) || !strings.Contains(fault.DiskProblem(), "refuses the server's user or password") {
		t.Errorf("Run() with the old password = %v", err)
	}
	before := asked.Load()
	write := begin(func() error { return store.CreateRun(t.Context(), newRun(2)) })
	for asked.Load() == before && !write.over() {
		time.Sleep(time.Millisecond)
	}
	old.Store(false)
	if <-write.done; write.err != nil {
		t.Errorf("CreateRun() while the password changes = %v", write.err)
	}
}
