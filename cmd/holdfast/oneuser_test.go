package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/flock"
)

// TestMarkUser: agents of one user all plan, or all apply.
func TestMarkUser(t *testing.T) {
	t.Parallel()
	tmp, uid := t.TempDir(), os.Getuid()
	mark := func(applies bool) func() error {
		t.Helper()
		unmark, err := markUser(tmp, uid, applies)
		if err != nil {
			t.Fatal(err)
		}
		return unmark
	}
	for _, applies := range []bool{false, true} {
		one, two := mark(applies), mark(applies)
		for range 2 {
			if _, err := markUser(tmp, uid, !applies); !errors.Is(err, errOneUser) {
				t.Errorf("applies: %t: an agent for the other kind: %v", applies, err)
			}
			if err := one(); err != nil { // the other one lives on
				t.Fatal(err)
			}
			one = mark(applies)
		}
		if err := errors.Join(one(), two()); err != nil {
			t.Fatal(err)
		}
	}
	wantEmpty(t, tmp)
}

// TestMarkOfOthers: neither what other users have put there, nor what a killed agent has
// left, keeps an agent from starting.
func TestMarkOfOthers(t *testing.T) {
	t.Parallel()
	tmp, uid := t.TempDir(), os.Getuid()
	name := func(kind, end string) string { return filepath.Join(tmp, strings.Replace(markName(kind), "*", end, 1)) }
	foreign, err := newMark(tmp, "plans") // for user uid+1, this user is another one
	if err != nil {
		t.Fatal(err)
	}
	unmark, err := markUser(tmp, uid+1, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unmark(), os.Remove(foreign.Name()), flock.Release(foreign)); err != nil {
		t.Fatal(err)
	}
	left := name("plans", "left")
	err = errors.Join(os.Mkdir(left, 0o000), os.Symlink(t.TempDir(), name("plans", "link")), os.WriteFile(name("plans", "file"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if unmark, err = markUser(tmp, uid, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mark of a dead agent stays: %v", err)
	}
	if err := unmark(); err != nil {
		t.Fatal(err)
	}
}

// TestMarksAtOnce: of agents that start at the same moment, no two of different kinds
// live.
func TestMarksAtOnce(t *testing.T) {
	t.Parallel()
	tmp, uid := t.TempDir(), os.Getuid()
	for range 50 {
		var group sync.WaitGroup
		unmarks, errs := make([]func() error, 6), make([]error, 6)
		for i := range unmarks {
			group.Go(func() { unmarks[i], errs[i] = markUser(tmp, uid, i%2 == 0) })
		}
		group.Wait()
		var living [2]int
		for i, unmark := range unmarks {
			if unmark == nil {
				if !errors.Is(errs[i], errOneUser) {
					t.Fatal(errs[i])
				}
				continue
			}
			living[i%2]++
			if err := unmark(); err != nil {
				t.Fatal(err)
			}
		}
		if living[0] > 0 && living[1] > 0 {
			t.Fatalf("%d agents apply and %d plan", living[0], living[1])
		}
	}
	wantEmpty(t, tmp)
}

// TestMarksCannotBeListed: an agent that cannot look for others does not start.
func TestMarksCannotBeListed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if marked, err := isMarked(file, "plans", os.Getuid()); err == nil {
		t.Errorf("marked: %t, and no error", marked)
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
