package local_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/local"
)

// TestAgentProcess is not a test: other tests start it as the agent. It is a
// real one, whose server is always out of reach.
func TestAgentProcess(t *testing.T) {
	dir := os.Getenv("HOLDFAST_TEST_AGENT_DIR")
	if dir == "" {
		return
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	agent, err := runner.NewAgent(runner.AgentOptions{
		About: runner.About{ID: "agent"}, Server: runner.Server{URL: "unix:///nonexistent", Token: "t"}, Dir: dir, Executor: nobody{},
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(strings.Join(os.Environ(), "\n"))
	fmt.Println("uid", os.Getuid(), "gid", os.Getgid(), "sid", sid())
	if secret := os.Getenv("HOLDFAST_TEST_READ"); secret != "" {
		_, err := os.ReadFile(secret)
		fmt.Println("denied", errors.Is(err, os.ErrPermission))
	}
	if path := os.Getenv("HOLDFAST_TEST_HANG"); path != "" {
		hangOnce(t, dir, path)
	}
	if stubborn := os.Getenv("HOLDFAST_TEST_STUBBORN"); stubborn != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	if err := agent.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func sid() int {
	id, _, _ := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
	return int(id)
}

type nobody struct{}

func (nobody) Execute(context.Context, protocol.Assignment, runner.Session) protocol.Result {
	return protocol.Result{}
}
func (nobody) WorkspaceDir(holdfast.AttemptRef) string { return "" }

// TestServerProcess is not a test: it starts an agent and is killed.
func TestServerProcess(t *testing.T) {
	dir := os.Getenv("HOLDFAST_TEST_SERVER_DIR")
	if dir == "" {
		return
	}
	if _, err := local.Start(t.Context(), options(dir)); err != nil {
		t.Fatal(err)
	}
	select {}
}

func options(dir string) local.Options {
	return local.Options{
		Command: local.Command{Binary: os.Args[0], Args: []string{"-test.run=^TestAgentProcess$"}, Env: map[string]string{"HOLDFAST_TEST_AGENT_DIR": dir}}, Dir: dir,
	}
}

// holder returns the process id of the agent that lives in dir.
func holder(t *testing.T, dir string, not int) int {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		text, _ := os.ReadFile(filepath.Join(dir, runner.AgentLockFile))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && pid != not {
			return pid
		}
	}
	t.Fatal("no agent came to life")
	return 0
}

func stop(t *testing.T, p *local.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestAgentIsStartedApart(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_SECRET", "of the server")
	dir := filepath.Join(t.TempDir(), "agent")
	p, err := local.Start(t.Context(), options(dir))
	if err != nil {
		t.Fatal(err)
	}
	pid := holder(t, dir, 0)
	if p.PID() != pid {
		t.Errorf("PID = %d, the lock says %d", p.PID(), pid)
	}
	stop(t, p)
	log, err := os.ReadFile(filepath.Join(dir, "agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "HOLDFAST_TEST_SECRET") || !strings.Contains(string(log), "PATH=") {
		t.Errorf("the agent's environment:\n%s", log)
	}
	if !strings.Contains(string(log), fmt.Sprint("sid ", pid)) {
		t.Errorf("the agent has no session of its own:\n%s", log)
	}
	if p.PID() != 0 {
		t.Error("a stopped agent has a process id")
	}
}

func TestAgentOutlivesAKilledServerAndIsAdopted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "agent")
	server := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerProcess$")
	server.Env = append(os.Environ(), "HOLDFAST_TEST_SERVER_DIR="+dir)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	pid := holder(t, dir, 0)
	_ = server.Process.Kill()
	_ = server.Wait()

	p, err := local.Start(t.Context(), options(dir))
	if err != nil {
		t.Fatal(err)
	}
	if p.PID() != pid || holder(t, dir, 0) != pid {
		t.Errorf("PID = %d, want that of the living agent, %d", p.PID(), pid)
	}
	stop(t, p)
	for deadline := time.Now().Add(2 * time.Minute); !dead(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the adopted agent was not stopped")
		}
	}
}

// dead reports whether a process has ended, even if nobody reaps it, as in some
// containers.
func dead(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(status), ") Z ")
}

func TestDeadAgentIsStartedAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "agent")
	p, err := local.Start(t.Context(), options(dir))
	if err != nil {
		t.Fatal(err)
	}
	pid := holder(t, dir, 0)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	if next := holder(t, dir, pid); next == pid {
		t.Error("the agent was not started again")
	}
	stop(t, p)
}

// TestStoppedAgentIsReplaced: one that somebody has stopped continues, and one that
// is stopped again is replaced; also if it was adopted.
func TestStoppedAgentIsReplaced(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "agent")
	ctx, leave := context.WithCancel(t.Context())
	first, err := local.Start(ctx, options(dir))
	if err != nil {
		t.Fatal(err)
	}
	pid := holder(t, dir, 0)
	leave() // the server ends; the next one adopts its agent
	log, opts := &lines{}, options(dir)
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	p, err := local.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if first.PID() != pid || p.PID() != pid {
		t.Fatalf("agents %d and %d, want %d", first.PID(), p.PID(), pid)
	}
	for deadline := time.Now().Add(2 * time.Minute); p.PID() == pid || p.PID() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("an agent that is stopped again and again is not replaced")
		}
		if p.PID() == pid {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	holder(t, dir, pid)
	text := log.String()
	goesOn, replaced := strings.Index(text, "is continued"), strings.Index(text, "is replaced")
	if goesOn < 0 || replaced < goesOn {
		t.Errorf("it was not continued first:\n%s", text)
	}
	stop(t, p)
}

// hangOnce holds the lock of the folder and does nothing more, in the process that
// makes the file at path.
func hangOnce(t *testing.T, dir, path string) {
	mark, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	mark.Close()
	lock, err := os.OpenFile(filepath.Join(dir, runner.AgentLockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		_, err = fmt.Fprintf(lock, "%d\n", os.Getpid())
	}
	if err != nil {
		t.Fatal(err)
	}
	select {}
}

// TestHangingAgentIsReplaced: it lives, and gives no sign of it, neither to the server
// nor in its folder. Also if it was adopted.
func TestHangingAgentIsReplaced(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "agent")
	opts, log := options(dir), &lines{}
	opts.Command.Env["HOLDFAST_TEST_HANG"] = filepath.Join(base, "hung")
	opts.Silence, opts.Logger = 3*time.Second, slog.New(slog.NewTextHandler(log, nil))
	var polls, signs atomic.Uint64
	var inFolder atomic.Bool
	opts.Signs = func() uint64 { // asked at each poll
		if inFolder.Load() {
			at := time.Unix(int64(polls.Load()), 0)
			_ = os.Chtimes(filepath.Join(dir, runner.AgentLockFile), at, at)
			polls.Add(1)
			return signs.Load()
		}
		polls.Add(1)
		return signs.Add(1)
	}
	ctx, leave := context.WithCancel(t.Context())
	first, err := local.Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	pid := holder(t, dir, 0)
	polled := func(n uint64) {
		t.Helper()
		before := polls.Load()
		until(t, "the agent was looked at", func() bool { return polls.Load() > before+n })
		if first.PID() != pid {
			t.Fatalf("an agent that gives signs of life was replaced:\n%s", log)
		}
	}
	polled(5)
	inFolder.Store(true)
	polled(5)
	leave() // the server ends; the next one adopts its agent
	opts.Signs = func() uint64 { return 0 }
	p, err := local.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if p.PID() != pid {
		t.Fatalf("agent %d, want %d", p.PID(), pid)
	}
	holder(t, dir, pid)
	if !strings.Contains(log.String(), "has stopped working and is replaced") {
		t.Errorf("it was replaced without a word:\n%s", log)
	}
	// The next one is well, and shows it.
	alive := func() time.Time {
		info, err := os.Stat(filepath.Join(dir, runner.AgentLockFile))
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	before := alive()
	until(t, "the agent shows that it lives", func() bool { return alive().After(before.Add(time.Second)) })
	stop(t, p)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// lines keeps what is logged.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "agent")
	opts := options(dir)
	opts.Command.Env["HOLDFAST_TEST_STUBBORN"] = "1"
	p, err := local.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	pid := holder(t, dir, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop = %v, want the context's error", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the agent did not go on: %v", err)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		opts local.Options
		want string
	}{
		"no binary":      {local.Options{Dir: t.TempDir()}, "no binary"},
		"no folder":      {local.Options{Command: local.Command{Binary: "x"}}, "no folder"},
		"no such binary": {local.Options{Command: local.Command{Binary: "/nonexistent"}, Dir: t.TempDir()}, "start agent"},
		"no such user":   {local.Options{Command: local.Command{Binary: "x"}, Dir: t.TempDir(), User: "no-such-user"}, "no such user"},
		"not a folder":   {local.Options{Command: local.Command{Binary: "x"}, Dir: file}, "not a folder"},
	} {
		if _, err := local.Start(t.Context(), tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Start = %v, want %q", name, err, tt.want)
		}
	}
}

func TestAgentRunsAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		if _, err := local.Start(t.Context(), local.Options{Command: local.Command{Binary: "x"}, Dir: t.TempDir(), User: "12345"}); err == nil {
			t.Error("an unprivileged server may start an agent as another user")
		}
		return
	}
	// The other user must reach the binary and the folder, but not the secret.
	base, err := os.MkdirTemp("", "holdfast-local-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	binary, secret, dir := filepath.Join(base, "agent.test"), filepath.Join(base, "key"), filepath.Join(base, "agent")
	// A process that is started while we write a program has it open as well until it
	// executes its own, and nobody can execute ours: https://go.dev/issue/22315.
	if out, err := exec.Command("cp", os.Args[0], binary).CombinedOutput(); err != nil {
		t.Fatalf("copy the program: %v: %s", err, out)
	}
	if err := errors.Join(
		os.WriteFile(secret, []byte("secret"), 0o600),
		os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "old"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	opts := options(dir)
	opts.Command.Binary, opts.User = binary, "12345:12346"
	opts.Command.Env["HOLDFAST_TEST_READ"] = secret
	p, err := local.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	_ = holder(t, dir, 0)
	stop(t, p)
	log, err := os.ReadFile(filepath.Join(dir, "agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"uid 12345 gid 12346", "denied true", "HOME=" + dir} {
		if !strings.Contains(string(log), want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	for _, name := range []string{"", "old", "agent.log", "attempts"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != 12345 {
			t.Errorf("%q is not the agent's", name)
		}
	}

	// A log that is a link, or a process id that is not the agent's, gets
	// nothing done by root.
	if err := errors.Join(os.Remove(filepath.Join(dir, "agent.log")), os.Symlink(secret, filepath.Join(dir, "agent.log"))); err != nil {
		t.Fatal(err)
	}
	if p, err := local.Start(t.Context(), opts); err == nil {
		t.Error("the agent's log was written through a link")
		stop(t, p)
	}
	// The folder of a third user is not given away.
	opts.User = "54321"
	if p, err := local.Start(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("Start in a third user's folder = %v", err)
		if err == nil {
			stop(t, p)
		}
	}
}
