//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

const (
	slots, mapped, userNamespace = sandbox.ModeSlots, sandbox.ModeRange, sandbox.ModeUserNamespace
	landlock, users, none        = sandbox.ModeLandlock, sandbox.ModeUsers, sandbox.ModeNone
)

// attacks are what a sandbox is to prevent, and the modes in which each works:
// docs/security.md has the same table. What works in a mode is tried as well,
// so that the table says no less than what is true.
var attacks = []struct {
	name  string
	works []sandbox.Mode // with the agent's privileges: ModeNone as root can do everything
	root  []sandbox.Mode // works in addition if the agent is root
	may   bool           // works may be too much: the kernel's settings can prevent it
	try   func(t *testing.T, l *lab) bool
}{
	{name: "a daemon outlives the engine", try: outlive},
	{name: "others' processes are seen", works: []sandbox.Mode{landlock, users, none}, try: seePeer},
	{name: "another run is signalled", works: []sandbox.Mode{none}, try: onPeer("signal")},
	{name: "another run is traced", works: []sandbox.Mode{none}, try: onPeer("trace")},
	{name: "the environment of another run is read", works: []sandbox.Mode{none}, try: onPeer("environ")},
	{name: "a descriptor of another run is taken", works: []sandbox.Mode{none}, try: onPeer("descriptor")},
	{name: "the agent is signalled", works: []sandbox.Mode{none}, try: onAgent("signal")},
	{name: "the agent is traced", root: []sandbox.Mode{none}, try: onAgent("trace")},
	{name: "the environment of the agent is read", root: []sandbox.Mode{none}, try: onAgent("environ")},
	{name: "a descriptor of the agent is taken", root: []sandbox.Mode{none}, try: onAgent("descriptor")},
	{name: "a private file of another run is read", works: []sandbox.Mode{none}, try: readPeer(0o700, 0o600)},
	{name: "an open file of another run is read", works: []sandbox.Mode{users, none}, try: readPeer(0o755, 0o644)},
	{name: "the files of another run are read", works: []sandbox.Mode{none}, try: readGiven},
	{name: "a private file of the agent below /usr or /opt is read", works: []sandbox.Mode{userNamespace, landlock, none}, try: readInstalled},
	{name: "a file is written outside of the workspace", works: []sandbox.Mode{none}, try: writeOutside},
	{name: "a file is written where everybody may", works: []sandbox.Mode{users, none}, try: writeOpen},
	{name: "a file outlives the engine where everybody may write", works: []sandbox.Mode{none}, try: leaveFiles},
	{name: "a read-only file is written", works: []sandbox.Mode{none}, try: writeReadOnly},
	{name: "a read-only mount is made writable", root: []sandbox.Mode{none}, try: remountReadOnly},
	{name: "an abstract socket of the agent is reached", works: []sandbox.Mode{slots, mapped, userNamespace, users, none}, try: abstractSocket},
	{name: "the controlling terminal of the agent is reached", try: onTerminal(func(string) string { return "/dev/tty" })},
	{name: "the terminal of the agent is opened by its path", works: []sandbox.Mode{none}, try: onTerminal(func(path string) string { return path })},
	{name: "a user namespace is made", works: []sandbox.Mode{slots, mapped, landlock, users, none}, may: true, try: verb("namespace")},
	{name: "a setuid program gives privileges", works: []sandbox.Mode{none}, try: setuidRoot},
	{name: "descriptors of the agent are inherited", try: inherited},
	{name: "a run reports another exit status than its own", try: lies},
	{name: "the first process of the sandbox is looked into or ended", works: []sandbox.Mode{landlock, none}, try: firstProcess},
	{name: "more processes are started than allowed", works: []sandbox.Mode{landlock, none}, try: forkBomb},
	{name: "more memory is used than allowed", try: useMemory},
	{name: "more shared memory is used than allowed", works: sandbox.Modes(), may: true, try: useShared},
	{name: "shared memory outlives the engine", works: []sandbox.Mode{landlock, none}, try: leaveSegment},
	{name: "a key outlives the engine", works: []sandbox.Mode{none}, may: true, try: leaveFor("key")},
	{name: "a message queue outlives the engine", works: []sandbox.Mode{none}, may: true, try: leaveFor("queue")},
	{name: "an engine outlives its agent", try: outliveAgent},
	{name: "a plan is swapped after the run", try: swap},
}

// TestAttacks tries every attack in every mode that this user can have.
func TestAttacks(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		for _, a := range attacks {
			t.Run(string(mode)+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				works := slices.Contains(a.works, mode) || os.Geteuid() == 0 && slices.Contains(a.root, mode)
				if got := a.try(t, newLab(t, mode)); got != works && (got || !a.may) && !t.Failed() {
					t.Errorf("it works: %t, want %t", got, works)
				}
			})
		}
	}
}

// TestSecurityPage holds the table of docs/security.md to attacks.
func TestSecurityPage(t *testing.T) {
	t.Parallel()
	if os.Getenv("SANDBOX_TEST_PROGRAM") != "" {
		t.Log("away from the sources")
		return
	}
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| What an engine tries |"
	for _, mode := range sandbox.Modes() {
		want += " " + string(mode) + " |"
	}
	want += "\n|---|" + strings.Repeat("---|", len(sandbox.Modes())) + "\n"
	for _, a := range attacks {
		want += "| " + a.name + " |"
		for _, mode := range sandbox.Modes() {
			switch {
			case slices.Contains(a.works, mode):
				want += " **works** |"
			case slices.Contains(a.root, mode):
				want += " works as root |"
			default:
				want += " prevented |"
			}
		}
		want += "\n"
	}
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/security.md lacks this table:\n%s", want)
	}
}

// worked returns whether the engine of an attack says that it worked.
func worked(t *testing.T, exit sandbox.Exit, said string) bool {
	t.Helper()
	t.Logf("%+v: %s", exit, said)
	if exit.Code != attackWorked && exit.Code != attackRefused {
		t.Errorf("the engine ended with %+v", exit)
	}
	return exit.Code == attackWorked
}

func verb(name string, args ...string) func(*testing.T, *lab) bool {
	return func(t *testing.T, l *lab) bool {
		exit, said := l.run(t, l.command(name, args...))
		return worked(t, exit, said)
	}
}

func outlive(t *testing.T, l *lab) bool {
	exit, said := l.run(t, l.command("daemon", l.lock, l.at))
	if exit.Code != 0 {
		t.Fatalf("%+v: %s", exit, said)
	}
	return !l.free(t)
}

// swap has a left-over process that waits until the plan was taken.
func swap(t *testing.T, l *lab) bool {
	exit, said := l.run(t, l.command("daemon", l.lock, l.at))
	if exit.Code != 0 {
		t.Fatalf("%+v: %s", exit, said)
	}
	if err := os.WriteFile(filepath.Join(l.dir, "taken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !l.free(t) {
		return true
	}
	taken := filepath.Join(openDir(t), "plan")
	if err := l.Take(l.dir, "plan", l.slot, 1<<20, taken); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(taken)
	return err != nil || string(b) != "good"
}

// peer starts another run of the same mode, and returns its process.
func peer(t *testing.T, l *lab) int {
	t.Helper()
	p := labOf(t, l.Starter, l.engine)
	c := p.command("sleep", p.lock, "peer-"+filepath.Base(filepath.Dir(p.dir)))
	p.background(t, c)
	return find(t, c.Args[1])
}

// find returns the process that has mark in its command line.
func find(t *testing.T, mark string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(line), mark) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the process is not there: " + mark)
	return 0
}

func seePeer(t *testing.T, l *lab) bool {
	p := labOf(t, l.Starter, l.engine)
	mark := "peer-" + filepath.Base(filepath.Dir(p.dir))
	c := p.command("sleep", p.lock, mark)
	p.background(t, c)
	find(t, mark)
	backwards := []byte(mark)
	slices.Reverse(backwards)
	return verb("see", string(backwards))(t, l)
}

func onPeer(name string) func(*testing.T, *lab) bool {
	return func(t *testing.T, l *lab) bool { return verb(name, strconv.Itoa(peer(t, l)))(t, l) }
}

func onAgent(name string) func(*testing.T, *lab) bool {
	return func(t *testing.T, l *lab) bool { return verb(name, strconv.Itoa(os.Getpid()))(t, l) }
}

func readPeer(dir, file os.FileMode) func(*testing.T, *lab) bool {
	return func(t *testing.T, l *lab) bool {
		p := labOf(t, l.Starter, l.engine)
		path := filepath.Join(p.dir, "lock")
		if err := os.Chmod(path, file); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p.dir, dir); err != nil {
			t.Fatal(err)
		}
		return verb("read", path)(t, l)
	}
}

// readGiven reads what an agent has for another run, next to its workspace: a plan file
// that it took, and a file that it made, once with and once without the folder's mode.
func readGiven(t *testing.T, l *lab) bool {
	p := labOf(t, l.Starter, l.engine)
	made, taken := filepath.Join(filepath.Dir(p.dir), "made"), filepath.Join(filepath.Dir(p.dir), "taken")
	if err := p.Take(p.dir, "lock", p.slot, 1<<20, taken); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Show(file, p.slot), file.Close()); err != nil {
		t.Fatal(err)
	}
	read := func(l *lab, given bool) (any bool) {
		for _, path := range []string{made, taken} {
			c := l.command("read", path)
			if given {
				c.Mounts = append(c.Mounts, sandbox.Mount{Source: path})
			}
			exit, said := l.run(t, c)
			any = worked(t, exit, said) || any
			if given && exit.Code != attackWorked {
				t.Errorf("the run cannot read its own %s", filepath.Base(path))
			}
		}
		return any
	}
	read(p, true)
	if read(l, false) {
		return true
	}
	// Below a folder of one slot even what is open to all is closed.
	if err := errors.Join(os.Chmod(filepath.Dir(p.dir), 0o700), p.Admit(filepath.Dir(p.dir), p.slot), os.Chmod(made, 0o644)); err != nil {
		t.Fatal(err)
	}
	read(p, true)
	return read(l, false)
}

// readInstalled reads a file of the agent's user where every sandbox finds programs.
func readInstalled(t *testing.T, l *lab) bool {
	path := os.Getenv("SANDBOX_TEST_INSTALLED")
	if path == "" && os.Geteuid() != 0 {
		path = "/usr/bin/env" // this user has nothing there: root runs this as other users
	}
	if path == "" {
		path = installed(t, os.Getuid())
	}
	if dir := l.Mode().Exposes(path); (dir != "") != (l.Mode() == userNamespace || l.Mode() == landlock) {
		t.Errorf("%s is exposed by %q", path, dir)
	}
	return verb("read", path)(t, l)
}

// installed is a file below /opt that only that user can read.
func installed(t *testing.T, user int) string {
	t.Helper()
	dir, err := os.MkdirTemp("/opt", "sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "key")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, user, user), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeOutside(t *testing.T, l *lab) bool {
	return verb("write", filepath.Join(openDir(t), "file"))(t, l)
}

// writeOpen writes to a file that everybody may write.
func writeOpen(t *testing.T, l *lab) bool {
	file := filepath.Join(openDir(t), "file")
	if err := errors.Join(os.WriteFile(file, []byte("former"), 0o600), os.Chmod(file, 0o666)); err != nil {
		t.Fatal(err)
	}
	verb("write", file)(t, l)
	now, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(now) != "former"
}

// leaveFiles looks whether what an engine has made in folders that everybody may write
// is there when it has ended.
func leaveFiles(t *testing.T, l *lab) (there bool) {
	open := filepath.Join(openDir(t), "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.Chmod(filepath.Dir(open), 0o777)); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", open} {
		path := filepath.Join(dir, "left-"+filepath.Base(filepath.Dir(l.dir)))
		t.Cleanup(func() { _ = folders.RemoveAll(path) })
		paths = append(paths, path)
	}
	exit, said := l.run(t, l.command("leave", paths...))
	if exit.Code != 0 {
		t.Fatalf("%+v: %s", exit, said)
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			there = true
			t.Log("it has left " + path)
		}
	}
	return there
}

func writeReadOnly(t *testing.T, l *lab) bool {
	c, file := readOnly(t, l, "write")
	c.Args = []string{file}
	exit, said := l.run(t, c)
	return worked(t, exit, said)
}

func remountReadOnly(t *testing.T, l *lab) bool {
	c, file := readOnly(t, l, "remount")
	if !l.Mode().OwnRoot() && l.Mode() != none {
		file = "/proc"
	}
	if l.Mode() == none {
		file = mountPoint(t, l)
	}
	c.Args = []string{file}
	exit, said := l.run(t, c)
	return worked(t, exit, said)
}

// mountPoint is one that root can remount without harm.
func mountPoint(t *testing.T, l *lab) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return "/proc"
	}
	dir := openDir(t)
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// readOnly is a command with a mount that cannot be written, of a file that
// the slot's user owns.
func readOnly(t *testing.T, l *lab, verb string) (c sandbox.Command, file string) {
	t.Helper()
	dir := openDir(t)
	file = filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if l.Mode() != users { // it has only the permissions of the file
		if err := l.Give(t.Context(), dir, l.slot); err != nil {
			t.Fatal(err)
		}
	}
	c = l.command(verb)
	c.Mounts = append(c.Mounts, sandbox.Mount{Source: file, Target: "/given/file"})
	if l.Mode().OwnRoot() {
		file = "/given/file"
	}
	return c, file
}

func abstractSocket(t *testing.T, l *lab) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	name := filepath.Base(filepath.Dir(l.dir))
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	return verb("socket", name)(t, l)
}

// onTerminal has an engine open a terminal of its agent: one that the test makes, as
// there may be none where tests run.
func onTerminal(what func(path string) string) func(*testing.T, *lab) bool {
	return func(t *testing.T, l *lab) bool {
		ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
			t.Fatal(err)
		}
		n, err := unix.IoctlGetUint32(int(ours.Fd()), unix.TIOCGPTN)
		if err != nil {
			t.Fatal(err)
		}
		terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		cmd := l.agent("terminal agent", what(terminal.Name()))
		cmd.Stdin = terminal
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		said, _ := cmd.CombinedOutput() // its exit code is what counts
		return worked(t, sandbox.Exit{Code: cmd.ProcessState.ExitCode()}, string(said))
	}
}

func setuidRoot(t *testing.T, l *lab) bool {
	path := os.Getenv("SANDBOX_TEST_SETUID")
	if path == "" && os.Geteuid() != 0 {
		path = "/usr/bin/passwd-is-not-run" // no setuid program says who it is: root runs this as other users
	}
	if path == "" {
		path = filepath.Join(openDir(t), "setuid")
		if out, err := exec.Command("cp", l.engine, path).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
			t.Fatal(err)
		}
	}
	c := l.command("setuid", path)
	c.Mounts = append(c.Mounts, sandbox.Mount{Source: path, Optional: true})
	exit, said := l.run(t, c)
	if l.Mode() == none && os.Getenv("SANDBOX_TEST_SETUID") == "" && os.Geteuid() != 0 {
		return true // see above
	}
	return worked(t, exit, said)
}

// inherited opens descriptors as a shell leaves them to the agent.
func inherited(t *testing.T, l *lab) bool {
	for _, fd := range []int{251, 600} {
		file, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Dup2(file, fd); err != nil {
			t.Fatal(err)
		}
		unix.Close(file)
	}
	exit, said := l.run(t, l.command("descriptors"))
	if exit.Code != 0 {
		t.Fatalf("%+v: %s", exit, said)
	}
	return strings.TrimSpace(said) != "0 device; 1 pipe; 2 pipe;"
}

// lies has an engine that signals its parent and ends with the code 7.
func lies(t *testing.T, l *lab) bool {
	exit, err := l.Run(t.Context(), l.command("lie"))
	t.Logf("%+v %v", exit, err)
	if l.Mode().OwnRoot() || l.Mode() == users {
		return err != nil || exit.Code != 7
	}
	// Its parent can be killed: then no exit code is told.
	return err == nil && exit.Code != 7 && exit.Signal == 0
}

func firstProcess(t *testing.T, l *lab) bool {
	exit, err := l.Run(t.Context(), l.command("first"))
	t.Logf("%+v %v", exit, err)
	l.dead(t)
	return err != nil || exit.Code != attackRefused
}

func forkBomb(t *testing.T, l *lab) bool {
	c := l.command("bomb", l.lock, "60")
	c.Limits.Processes = 50
	exit, said := l.run(t, c)
	l.dead(t)
	return worked(t, exit, said)
}

func useMemory(t *testing.T, l *lab) bool {
	c := l.command("memory", "600")
	c.Limits.Memory = 300 << 20
	exit, said := l.run(t, c)
	if len(said) > 300 {
		said = said[:300]
	}
	t.Logf("%+v: %s", exit, said)
	if exit.OutOfMemory == sandbox.No {
		t.Error("it is not said that memory ran out")
	}
	return exit.Code == 0
}

func useShared(t *testing.T, l *lab) bool {
	c := l.command("shared", "210")
	c.Limits.Memory = 200 << 20
	exit, said := l.run(t, c)
	return exit.OutOfMemory == sandbox.No && worked(t, exit, said)
}

// leaveSegment looks whether what an engine has made of System V is there when it has
// ended, and removes it. The engine's namespace may number as others do: its key says
// what it has made.
func leaveSegment(t *testing.T, l *lab) bool {
	key := strconv.Itoa(1 + rand.IntN(math.MaxInt32))
	exit, said := l.run(t, l.command("segment", key))
	if exit.Code != 0 {
		t.Fatalf("%+v: %s", exit, said)
	}
	there := false
	for _, file := range []string{"shm", "msg", "sem"} {
		list, err := os.ReadFile("/proc/sysvipc/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(list)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != key {
				continue
			}
			there = true
			t.Log("it has left " + file + " " + fields[1])
			switch id := uintptr(number(fields[1])); file {
			case "shm":
				_, _ = unix.SysvShmCtl(int(id), unix.IPC_RMID, nil)
			case "msg":
				_, _, _ = unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
			case "sem":
				_, _, _ = unix.Syscall(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID)
			}
		}
	}
	return there
}

// leaveFor has one engine leave what is by name, and the next one look for it.
func leaveFor(what string) func(*testing.T, *lab) bool {
	return func(t *testing.T, l *lab) bool {
		name := "holdfast-" + filepath.Base(filepath.Dir(l.dir)) + filepath.Base(l.dir)
		_, said := l.run(t, l.command(what, "leave", name))
		t.Log(said)
		exit, said := l.run(t, l.command(what, "find", name))
		return worked(t, exit, said)
	}
}

// outliveAgent kills an agent whose engine runs.
func outliveAgent(t *testing.T, l *lab) bool {
	cmd := l.agent("agent")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready(t, out)
	if l.free(t) {
		t.Fatal("the engine does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if l.free(t) {
			return false
		}
	}
	return true
}

// agent is a start of this program as an agent of the lab: what it does is a verb.
func (l *lab) agent(verb string, args ...string) *exec.Cmd {
	cmd := exec.Command(l.engine, append([]string{string(l.Mode()), l.dir, l.lock, strconv.Itoa(l.slot.UID)}, args...)...)
	cmd.Env = []string{engineVerb + "=" + verb}
	return cmd
}

// agentLab is the lab of an agent that was started with args.
func agentLab(args []string) (*lab, error) {
	slot := sandbox.Slot{UID: number(args[3]), GID: number(args[3])}
	s, err := sandbox.Probe(context.Background(), sandbox.Options{Mode: sandbox.Mode(args[0]), Slot: slot})
	if err != nil {
		return nil, err
	}
	l := &lab{Starter: s, slot: slot, dir: args[1], at: args[1], lock: args[2], engine: os.Args[0]}
	if s.Mode().OwnRoot() {
		l.at = "/workspace"
	}
	return l, nil
}

// agent runs an engine until it is killed.
func agent(args []string) int {
	l, err := agentLab(args)
	if err != nil {
		say(err)
		return 1
	}
	c := l.command("deaf", l.lock)
	c.Stdout, c.Stderr = os.Stdout, os.Stdout
	_, err = l.Run(context.Background(), c)
	say(err)
	return 1
}

// terminalAgent runs an engine that opens args[4], and ends as it does. It has a
// terminal itself.
func terminalAgent(args []string) int {
	l, err := agentLab(args)
	if err == nil {
		var terminal *os.File
		if terminal, err = os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			err = terminal.Close()
		}
	}
	if err != nil {
		say(err)
		return 1
	}
	c := l.command("terminal", args[4])
	c.Stdout, c.Stderr = os.Stdout, os.Stdout
	exit, err := l.Run(context.Background(), c)
	if err != nil {
		say(err)
		return 1
	}
	return exit.Code
}
