package uplink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// fragileDisk is a disk that loses with a power cut what was not synced: a file without
// its content is empty, and one whose name is not in its folder is gone.
type fragileDisk struct {
	t *testing.T

	mu       sync.Mutex
	contents map[string][]byte            // of files
	folders  map[string]map[string]string // files by name, of each folder
	fails    bool                         // it takes nothing
}

func newFragileDisk(t *testing.T) *fragileDisk {
	return &fragileDisk{t: t, contents: map[string][]byte{}, folders: map[string]map[string]string{}}
}

// fileOf returns what a file is, whatever its name.
func fileOf(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Ino, info.ModTime().UnixNano())
	}
	return ""
}

func (d *fragileDisk) SyncFile(f *os.File) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := f.Stat()
	data, errRead := os.ReadFile(f.Name())
	if err := errors.Join(err, errRead); err != nil {
		return err
	}
	if d.fails {
		return syscall.EIO
	}
	d.contents[fileOf(info)] = data
	return nil
}

func (d *fragileDisk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		names[entry.Name()] = fileOf(info)
	}
	d.folders[dir] = names
	return nil
}

// cut returns what is in a folder after a power cut.
func (d *fragileDisk) cut(dir string) string {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	left := d.t.TempDir()
	d.leave(dir, left)
	return left
}

func (d *fragileDisk) leave(dir, to string) {
	d.t.Helper()
	for name, at := range d.folders[dir] {
		var err error
		path := filepath.Join(to, name)
		if info, gone := os.Stat(filepath.Join(dir, name)); gone == nil && info.IsDir() {
			err = os.Mkdir(path, 0o700)
			d.leave(filepath.Join(dir, name), path)
		} else {
			err = os.WriteFile(path, d.contents[at], 0o600)
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// fragileAgent is the folder of an agent on such a disk.
type fragileAgent struct {
	*Folder
	disk *fragileDisk
}

func newFragileAgent(t *testing.T) fragileAgent {
	t.Helper()
	a := fragileAgent{disk: newFragileDisk(t)}
	a.Folder = &Folder{Dir: t.TempDir(), Disk: a.disk, Logger: slog.New(slog.DiscardHandler), Now: time.Now}
	if err := a.Make(); err != nil {
		t.Fatal(err)
	}
	return a
}

// claim opens an attempt at an apply that the server lets begin.
func (a fragileAgent) claim(t *testing.T) *Session {
	t.Helper()
	s, err := a.Open(Claimed{
		AttemptRef: holdfast.AttemptRef{Run: "run-1", Attempt: 1}, Kind: holdfast.RunApply, Lease: time.Hour, OwnState: true,
	}, a.Logger)
	if err != nil {
		t.Fatal(err)
	}
	s.lease.mayApply = true
	return s
}

// found is what the next process finds of that attempt after a power cut: its outcome,
// and what it delivers.
func (a fragileAgent) found(t *testing.T) (protocol.Result, []string) {
	t.Helper()
	if err := a.disk.SyncDir(a.Dir); err != nil { // made when the agent was first started
		t.Fatal(err)
	}
	k := &Folder{Dir: a.disk.cut(a.Dir), Logger: a.Logger, Now: time.Now}
	left, err := k.Left()
	if err != nil || len(left) != 1 {
		t.Fatalf("attempts left: %v, %v", left, err)
	}
	s, err := k.Open(left[0], a.Logger)
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Outcome(filepath.Join(t.TempDir(), "workspace"))
	if err != nil {
		t.Fatal(err)
	}
	var parcels []string
	for _, o := range []*outbox{s.artefacts, s.state.held} {
		for _, p := range o.parcels {
			data, err := os.ReadFile(p.path)
			if err != nil {
				t.Fatal(err)
			}
			parcels = append(parcels, p.name+"="+string(data))
		}
	}
	return result, parcels
}

func putAll(t *testing.T, s *Session, artefacts ...string) {
	t.Helper()
	for _, artefact := range artefacts {
		name, text, _ := strings.Cut(artefact, "=")
		if err := s.PutArtefact(t.Context(), name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// deliverOne delivers the oldest artefact.
func deliverOne(t *testing.T, s *Session) {
	t.Helper()
	s.artefacts.send = func(context.Context, string, string) error { return nil }
	if !s.artefacts.deliver(t.Context(), s.artefacts.parcels[0]) {
		t.Fatal("nothing was delivered")
	}
}

// TestPowerCutDuringAnApply: of an apply that may have begun nothing is lost that the
// server does not have, and nothing comes back that it has.
func TestPowerCutDuringAnApply(t *testing.T) {
	t.Parallel()
	a := newFragileAgent(t)
	s := a.claim(t)
	putAll(t, s, "input=i", "document=d", "info=n")
	deliverOne(t, s)
	if !s.MayApply() {
		t.Fatal("the apply may not begin")
	}
	result, parcels := a.found(t)
	if result.Status != holdfast.RunInterrupted || !result.Applying {
		t.Errorf("it ended %s, applying %v: it may have changed something", result.Status, result.Applying)
	}
	if want := []string{"document=d", "info=n"}; !slices.Equal(parcels, want) {
		t.Errorf("right after it has begun: %q, want %q", parcels, want)
	}

	putAll(t, s, "outputs=o")
	state, unlock := stateOp{Query: "ID=1", body: []byte("{}")}, stateOp{Query: "ID=1", body: []byte("{}")}
	if _, err := s.state.held.put(parcelState, state.reader()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.state.held.put(parcelUnlock, unlock.reader()); err != nil {
		t.Fatal(err)
	}
	_, parcels = a.found(t)
	if want := []string{"document=d", "info=n", "outputs=o", "state={\"query\":\"ID=1\"}\n{}"}; !slices.Equal(parcels, want) {
		t.Errorf("what came later: %q, want %q: the lock ends with the attempt", parcels, want)
	}
}

// TestPowerCutBeforeAnApply: an apply that had not begun is known to the next process,
// which says so: the server has it begin again.
func TestPowerCutBeforeAnApply(t *testing.T) {
	t.Parallel()
	a := newFragileAgent(t)
	putAll(t, a.claim(t), "input=i", "document=d")
	result, _ := a.found(t)
	if result.Status != holdfast.RunInterrupted || result.Applying || !result.Failure.Transient {
		t.Errorf("it ended %s, applying %v, %+v: it is not tried again", result.Status, result.Applying, result.Failure)
	}
}

// TestPowerCutAfterAResult: an apply that has ended without having begun, such as one
// whose plan has changed, is not an error for want of that plan.
func TestPowerCutAfterAResult(t *testing.T) {
	t.Parallel()
	a := newFragileAgent(t)
	s := a.claim(t)
	putAll(t, s, "input=i", "document=d")
	s.SaveResult(protocol.Result{Status: holdfast.RunPlanned, Reason: holdfast.ReasonPlanChanged})
	result, parcels := a.found(t)
	if result.Status != holdfast.RunPlanned || !slices.Equal(parcels, []string{"input=i", "document=d"}) {
		t.Errorf("it ended %s (%s) with %q", result.Status, result.Reason, parcels)
	}
}

// TestNoApplyOnADiskThatTakesNothing: if it is not certain that what the plan has left is
// on disk the apply does not begin, not even when the disk is back: a second sync says
// nothing of what the first one has lost. Nor is there a result without it.
func TestNoApplyOnADiskThatTakesNothing(t *testing.T) {
	t.Parallel()
	a := newFragileAgent(t)
	s := a.claim(t)
	putAll(t, s, "document=d")
	a.disk.fails = true
	if s.MayApply() || s.Unkept() == nil {
		t.Errorf("the apply may begin, or it is not said that the disk is why it may not: %v", s.Unkept())
	}
	a.disk.fails = false
	if s.MayApply() || s.HasBegun() || s.Unkept() == nil {
		t.Errorf("the apply may begin after the disk had failed, or not for that: %v", s.Unkept())
	}
	s.SaveResult(protocol.Result{Status: holdfast.RunPlanned})
	if result, parcels := a.found(t); result.Status != holdfast.RunInterrupted || result.Applying {
		t.Errorf("it ended %s, applying %v, with %q", result.Status, result.Applying, parcels)
	}
}

// TestOutboxLastsOnceItIsTo: what waits is on disk then, what was refused, and what is put
// later.
func TestOutboxLastsOnceItIsTo(t *testing.T) {
	t.Parallel()
	disk := newFragileDisk(t)
	o := &outbox{dir: t.TempDir(), disk: disk}
	if err := o.open(); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if _, err := o.put(name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("first", "1")
	put("second", "2")
	o.send = func(context.Context, string, string) error { return &AnswerError{Status: 403, Ours: true} }
	if !o.deliver(t.Context(), o.parcels[0]) {
		t.Fatal("nothing was refused")
	}
	if err := o.makeLasting(); err != nil {
		t.Fatal(err)
	}
	put("third", "3")
	left := disk.cut(o.dir)
	for name, want := range map[string]string{"refused-000000-first": "1", "000001-second": "2", "000002-third": "3"} {
		if data, err := os.ReadFile(filepath.Join(left, name)); err != nil || string(data) != want {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
}
