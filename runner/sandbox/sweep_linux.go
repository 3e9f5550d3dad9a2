package sandbox

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/runner/sandbox/internal/stage"
)

// sweepFor is how long what was killed may take to die.
const sweepFor = time.Minute

// sweep ends what a sandbox without a process namespace left, if its first
// process did not live to do so. It is called on the thread that started it.
func (s *Starter) sweep(spec *stage.Spec, said []stage.Record) error {
	if spec.Namespace || slices.ContainsFunc(said, func(r stage.Record) bool {
		return r.Kind == stage.RecordDead || r.Kind == stage.RecordFailed
	}) {
		return nil
	}
	switch s.mode {
	case ModeLandlock:
		return kill(func() { _ = syscall.Kill(-1, syscall.SIGKILL) }) // this thread is in its own domain
	case ModeUsers:
		var err error
		onThread(func() { err = kill(func() { stage.KillUser(spec.UID) }) })
		return err
	default:
		return nil // ModeNone: nothing says what is its
	}
}

// kill calls all until no process that the calling thread can signal is alive.
func kill(all func()) error {
	for end := time.Now().Add(sweepFor); time.Now().Before(end); time.Sleep(time.Millisecond) {
		all()
		if !anyAlive() {
			return nil
		}
	}
	return errors.New("processes that it started cannot be killed")
}

// anyAlive says whether a process that the calling thread can signal, other than this
// one, is alive.
func anyAlive() bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || syscall.Kill(pid, 0) != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		state := string(stat[strings.LastIndexByte(string(stat), ')')+1:]) // after the name, which can be anything
		if !strings.HasPrefix(state, " Z") && !strings.HasPrefix(state, " X") {
			return true
		}
	}
	return false
}
