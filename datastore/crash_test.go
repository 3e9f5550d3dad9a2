package datastore_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestMain lets the test binary be the server that is killed, and the one whose
// disk is full.
func TestMain(m *testing.M) {
	for name, child := range map[string]func(dir string) error{
		"DATASTORE_TEST_WRITER": writeUntilKilled,
		"DATASTORE_TEST_FULL":   fillDisk,
		"DATASTORE_TEST_PRUNER": pruneUntilKilled,
	} {
		if dir := os.Getenv(name); dir != "" {
			if err := child(dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(postgresserver.Main(m))
}

func childKeys() (*seal.Keyring, error) {
	return seal.NewKeyring(bytes.Repeat([]byte("k"), seal.KeySize))
}

func child(t testing.TB, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// writeUntilKilled does whole runs one after another and tells of each step that
// was acknowledged.
func writeUntilKilled(dir string) error {
	keys, err := childKeys()
	if err != nil {
		return err
	}
	ctx := context.Background()
	store, err := datastore.Open(ctx, datastore.Options{Path: filepath.Join(dir, "holdfast.db"), Keys: keys})
	if err != nil {
		return err
	}
	runs, err := store.Runs(ctx, holdfast.RunFilter{Limit: 1})
	if err != nil {
		return err
	}
	first := 1
	if len(runs) > 0 {
		if _, err := fmt.Sscanf(runs[0].ID, "run-%d", &first); err != nil {
			return err
		}
		fmt.Println("created", first) // perhaps it was killed before it could say so
		first++
	}
	for n := first; ; n++ {
		if err := writeOne(ctx, store, n); err != nil {
			return err
		}
	}
}

func writeOne(ctx context.Context, store *datastore.Store, n int) error {
	run := newRun(n)
	run.Kind = holdfast.RunApply
	if err := store.CreateRun(ctx, run); err != nil {
		return err
	}
	fmt.Println("created", n)
	run, err := store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, noon, 0)
	if err != nil {
		return err
	}
	fmt.Println("claimed", n)
	if _, err := store.AppendLog(ctx, run.Ref(), 0, []byte("line\n")); err != nil {
		return err
	}
	fmt.Println("logged", n)
	write := holdfast.StateWrite{Location: run.StateLocation, By: run.Ref(), Data: stateJSON(1, "l", strings.Repeat("s", 100<<10))}
	if _, err := store.PutState(ctx, write); err != nil {
		return err
	}
	fmt.Println("state", n)
	if err := store.PutArtefact(ctx, run.Ref(), "plan", bytes.NewReader(noise(100<<10))); err != nil {
		return err
	}
	fmt.Println("plan", n)
	run.Status = holdfast.RunApplied
	if _, err := store.EndAttempt(ctx, run.Ref(), run, nil); err != nil {
		return err
	}
	fmt.Println("ended", n)
	return nil
}

// TestKilled kills a server again and again while it writes: what it had
// acknowledged is there and whole, and the next one starts.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "holdfast.db")
	acknowledged := map[string]bool{} // "step run"
	for round := range 6 {
		cmd := child(t, "DATASTORE_TEST_WRITER="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Each round ends at another step of a run.
		lines := bufio.NewScanner(stdout)
		for i := 0; lines.Scan(); i++ {
			acknowledged[lines.Text()] = true
			if i == 0 && round == 0 {
				refused(t, path, cmd.Process.Pid)
			}
			if i == 25+round {
				_ = cmd.Process.Kill() // and reads what was still said
			}
		}
		if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
			t.Fatalf("child ended with %v: %s", err, stderr.Bytes())
		}
		checkAcknowledged(t, path, acknowledged)
	}
}

// refused checks that a second server is told who the first one is.
func refused(t *testing.T, path string, pid int) {
	t.Helper()
	_, err := datastore.Open(t.Context(), datastore.Options{Path: path, Keys: testKeys(t, 'k')})
	if !errors.Is(err, holdfast.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d on host", pid)) {
		t.Errorf("Open() of another process's database = %v, want ErrLocked with its pid %d", err, pid)
	}
}

func checkAcknowledged(t *testing.T, path string, acknowledged map[string]bool) {
	t.Helper()
	store, err := datastore.Open(t.Context(), datastore.Options{Path: path, Keys: testKeys(t, 'k')})
	if err != nil {
		t.Fatalf("Open() after kill -9 = %v", err)
	}
	defer store.Close()
	done := func(step string, n int) bool { return acknowledged[fmt.Sprint(step, " ", n)] }
	for n := 1; done("created", n); n++ {
		run := must[holdfast.Run](t)(store.Run(t.Context(), newRun(n).ID))
		if done("claimed", n) && run.Attempt != 1 {
			t.Errorf("the claim of run %d is gone", n)
		}
		if done("logged", n) && string(readLog(t, store, run.ID, 1, 0).Data) != "line\n" {
			t.Errorf("the log of run %d is gone", n)
		}
		if done("state", n) {
			if data, _, err := store.State(t.Context(), run.StateLocation); err != nil || len(data) < 100<<10 {
				t.Errorf("the state of run %d = %d bytes, %v", n, len(data), err)
			}
		}
		if done("plan", n) && len(artefact(t, store, run.ID, "plan")) != 100<<10 {
			t.Errorf("the plan of run %d is not whole", n)
		}
		if done("ended", n) && run.Status != holdfast.RunApplied {
			t.Errorf("run %d is %s, want applied", n, run.Status)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity_check = %q, %v", verdict, err)
	}
}

// TestDiskFull runs out of room in its own process: a file system of 4 MiB where we may
// mount one, a limit of 2 MiB for each file elsewhere.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]bool{"file system": true, "file size": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if mount {
				if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
					t.Logf("no file system to fill: mount: %v; the limit for files is tested alone", err)
					return
				}
				defer func() {
					if err := syscall.Unmount(dir, 0); err != nil {
						t.Error(err)
					}
				}()
			}
			cmd := child(t, "DATASTORE_TEST_FULL="+dir, "DATASTORE_TEST_MOUNTED="+strconv.FormatBool(mount))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func fillDisk(dir string) error {
	mounted := os.Getenv("DATASTORE_TEST_MOUNTED") == "true"
	ballast := filepath.Join(dir, "ballast")
	limit := func(size uint64) error {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
			return err
		}
		now.Cur = min(size, now.Max)
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now)
	}
	if mounted {
		if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
			return err
		}
	}
	keys, err := childKeys()
	if err != nil {
		return err
	}
	ctx := context.Background()
	store, err := datastore.Open(ctx, datastore.Options{Path: filepath.Join(dir, "holdfast.db"), Keys: keys})
	if err != nil {
		return err
	}
	if err := store.CreateRun(ctx, newRun(0)); err != nil {
		return err
	}
	run, err := store.ClaimRun(ctx, newRun(0).ID, protocol.AgentRef{ID: "agent"}, noon, 0)
	if err != nil {
		return err
	}
	if !mounted {
		if err := limit(2 << 20); err != nil {
			return err
		}
	}
	if err := failOnFullDisk(ctx, store, run); err != nil {
		return err
	}
	if mounted {
		err = os.Remove(ballast)
	} else {
		err = limit(1 << 40)
	}
	if err != nil {
		return err
	}
	if err := store.PutArtefact(ctx, run.Ref(), "plan", bytes.NewReader(noise(100<<10))); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := store.CreateRun(ctx, newRun(9999)); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	return store.Close()
}

// failOnFullDisk writes until no write succeeds, to blobs and to the database, and
// checks that what failed is not there and the rest is.
func failOnFullDisk(ctx context.Context, store *datastore.Store, run holdfast.Run) error {
	err := store.PutArtefact(ctx, run.Ref(), "plan", bytes.NewReader(noise(8<<20)))
	if err == nil || !strings.Contains(err.Error(), "no space left on device") && !strings.Contains(err.Error(), "file too large") {
		return fmt.Errorf("artefact larger than the disk: %w, want a clear error", err)
	}
	if _, err := store.Artefact(ctx, run.ID, "plan"); !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("artefact that was not stored: %w, want ErrNotFound", err)
	}
	for n := 1; ; n++ {
		big := newRun(n)
		big.Detail = strings.Repeat("x", 64<<10)
		err := store.CreateRun(ctx, big)
		if err == nil {
			if n > 1000 {
				return errors.New("the disk is never full")
			}
			continue
		}
		if text := err.Error(); !strings.Contains(text, "full") && !strings.Contains(text, "I/O error") {
			return fmt.Errorf("run larger than the disk: %w, want a clear error", err)
		}
		if _, err := store.Run(ctx, big.ID); !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("run that was not stored: %w, want ErrNotFound", err)
		}
		if _, err := store.Run(ctx, newRun(n-1).ID); err != nil {
			return fmt.Errorf("run that was stored: %w", err)
		}
		return nil
	}
}
