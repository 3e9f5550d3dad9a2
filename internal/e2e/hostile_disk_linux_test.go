package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/mounts"
)

// The disk is full for a while, during an apply: that continues, whatever cannot
// be kept is said, and once there is space again everything comes home.
func TestDiskIsFullForAWhile(t *testing.T) {
	t.Parallel()
	if mounts.Again(t) {
		return
	}
	w := newWorld(t, quick)
	w.mountSmallDisk(48 << 20)
	w.start()
	pr := w.fleet().open(worker("alpha", "1", w.gated("work")))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")

	w.fillDisk()
	other := w.fleet().open(cluster("beta", "nodes: 1"))
	w.openGate("work")
	w.untilSaid("work", "start stop")
	w.until("somebody says that the disk is full", func() (bool, string) {
		log := w.log.current() + w.agentLog()
		return strings.Contains(log, "no space left") || strings.Contains(log, "disk is full"), "nobody does"
	})
	w.freeDisk()

	pr.untilApplied()
	w.fleet().hub.Redeliver("pull_request") // what could not be stored was not taken
	other.untilPlanned("1 to create")
	other.merge()
	other.untilApplied("1 created")
	if rec := w.untilPhase("alpha", holdfast.PhaseActive); rec.StateSerial == 0 || rec.Waiting != "" {
		t.Errorf("alpha has state serial %d, and waits for %q", rec.StateSerial, rec.Waiting)
	}

	if code := w.stop(); code != 0 {
		t.Errorf("the server ended with code %d", code)
	}
	w.start() // nothing on the disk is broken
	if rec := w.record("beta"); rec.Waiting != "" || rec.Applied.Run == "" {
		t.Errorf("beta waits for %q after a restart", rec.Waiting)
	}
}

// mountSmallDisk gives the data folder its own disk.
func (w *world) mountSmallDisk(size int64) {
	w.t.Helper()
	if err := os.Mkdir(w.path("data"), 0o711); err != nil {
		w.t.Fatal(err)
	}
	err := syscall.Mount("tmpfs", w.path("data"), "tmpfs", 0, fmt.Sprintf("size=%d,mode=711", size))
	if err != nil {
		w.t.Fatalf("mount a small disk (in a container this takes CAP_SYS_ADMIN): %v", err)
	}
	w.t.Cleanup(func() { // before the world ends
		if w.t.Failed() {
			w.t.Logf("the agents' logs:\n%s", w.agentLog())
		}
		if w.server != nil {
			w.stop()
		}
		w.killLeftBehind()
		if err := syscall.Unmount(w.path("data"), syscall.MNT_DETACH); err != nil {
			w.t.Error(err)
		}
	})
}

// fillDisk writes until not even a byte fits.
func (w *world) fillDisk() {
	w.t.Helper()
	file, err := os.Create(w.path("data", "filler"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := file.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil && !errors.Is(err, io.ErrShortWrite) {
			w.t.Fatal(err)
		}
	}
}

func (w *world) freeDisk() {
	w.t.Helper()
	if err := os.Remove(w.path("data", "filler")); err != nil {
		w.t.Fatal(err)
	}
}
