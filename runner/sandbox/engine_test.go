//go:build linux

package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// engineVerb is the variable that makes this test program an engine: what it
// does is a function of engines.
const engineVerb = "SANDBOX_TEST_ENGINE"

// The exit codes of an engine that attacks.
const (
	attackWorked  = 10
	attackRefused = 11
)

func TestMain(m *testing.M) {
	if verb := os.Getenv(engineVerb); verb != "" {
		os.Exit(engines[verb](os.Args[1:]))
	}
	if err := sandbox.Harden(); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, dir := range removeAtEnd {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// removeAtEnd are folders that all tests use.
var removeAtEnd []string

// engines are what this program does when it is started as an engine. Each
// returns its exit code.
var engines map[string]func(args []string) int

func init() {
	engines = map[string]func([]string) int{
		"sleep":          func(args []string) int { hold(args[0], syscall.LOCK_SH); say("ready"); return forever() },
		"hold users":     holdUsers,
		"take name":      takeName,
		"take unheard":   takeUnheard,
		"take deaf":      takeDeaf,
		"whoami":         func([]string) int { say(os.Geteuid()); return 0 },
		"daemon":         daemon,
		"daemonize":      func(args []string) int { return spawn("sleeper", args) },
		"sleeper":        sleeper,
		"see":            see,
		"signal":         func(args []string) int { return verdict(syscall.Kill(number(args[0]), 0)) },
		"trace":          trace,
		"environ":        environ,
		"descriptor":     descriptor,
		"read":           func(args []string) int { _, err := os.ReadFile(args[0]); return verdict(err) },
		"write":          func(args []string) int { return verdict(os.WriteFile(args[0], nil, 0o600)) },
		"socket":         socket,
		"remount":        remount,
		"namespace":      namespace,
		"first":          first,
		"lie":            lie,
		"descriptors":    descriptors,
		"setuid":         setuid,
		"bomb":           bomb,
		"memory":         memory,
		"shared":         shared,
		"segment":        segment,
		"key":            key,
		"queue":          queue,
		"leave":          leave,
		"save":           save,
		"deaf":           deaf,
		"terminal":       terminal,
		"agent":          agent,
		"terminal agent": terminalAgent,
		"without":        without,
		"machine":        machine,
		"connect":        connect,
	}
}

// key adds a key of that name to the keys of this user, or finds and removes it.
func key(args []string) int {
	if args[0] == "leave" {
		_, err := unix.AddKey("user", args[1], []byte("secret"), unix.KEY_SPEC_USER_KEYRING)
		return verdict(err)
	}
	id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", args[1], 0)
	if err == nil {
		_, err = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0)
	}
	return verdict(err)
}

// queue makes a POSIX message queue of that name, or finds and removes it.
func queue(args []string) int {
	name, err := unix.BytePtrFromString(args[1])
	if err != nil {
		panic(err)
	}
	at, flags := uintptr(unsafe.Pointer(name)), uintptr(unix.O_RDWR)
	if args[0] == "leave" {
		flags |= unix.O_CREAT | unix.O_EXCL
	}
	_, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, at, flags, 0o600, 0, 0, 0)
	if errno == 0 && args[0] != "leave" {
		_, _, errno = unix.Syscall(unix.SYS_MQ_UNLINK, at, 0, 0)
	}
	if errno != 0 {
		return verdict(errno)
	}
	return verdict(nil)
}

// forever waits in a way that Go's runtime does not take for a deadlock.
func forever() int {
	for {
		time.Sleep(time.Hour)
	}
}

func say(args ...any) { fmt.Println(args...) }

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// verdict is the exit code of an attack that ended with err.
func verdict(err error) int {
	say(err)
	if err == nil {
		return attackWorked
	}
	return attackRefused
}

// hold takes a lock that ends with this process.
func hold(path string, how int) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err == nil {
		err = syscall.Flock(fd, how)
	}
	if err != nil {
		panic(err)
	}
}

// itself is this program as a process can start it again.
func again(verb string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{engineVerb + "=" + verb}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func spawn(verb string, args []string) int {
	if err := again(verb, args...).Start(); err != nil {
		say(err)
		return 1
	}
	return 0
}

// daemon leaves a process that is not its child, nor in its session or group,
// and writes a plan; it ends when the process is there.
func daemon(args []string) int {
	lock, dir := args[0], args[1]
	if err := os.WriteFile(filepath.Join(dir, "plan"), []byte("good"), 0o600); err != nil {
		say(err)
		return 1
	}
	if err := again("daemonize", lock, dir).Run(); err != nil {
		say(err)
		return 1
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "there")); err == nil {
			return 0
		}
		time.Sleep(time.Millisecond)
	}
}

// sleeper is the process that daemon leaves. It swaps the plan when it is told.
func sleeper(args []string) int {
	lock, dir := args[0], args[1]
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	hold(lock, syscall.LOCK_SH)
	_ = os.WriteFile(filepath.Join(dir, "there"), nil, 0o600)
	for {
		if _, err := os.Stat(filepath.Join(dir, "taken")); err == nil {
			_ = os.WriteFile(filepath.Join(dir, "plan"), []byte("evil"), 0o600)
		}
		time.Sleep(time.Millisecond)
	}
}

// see looks for a process that has args[0], backwards, in its command line.
func see(args []string) int {
	mark := []byte(args[0])
	for i, j := 0, len(mark)-1; i < j; i, j = i+1, j-1 {
		mark[i], mark[j] = mark[j], mark[i]
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, mark) {
			return attackWorked
		}
	}
	return attackRefused
}

func trace(args []string) int {
	err := unix.PtraceSeize(number(args[0]))
	return verdict(err)
}

// environ reads the environment of a process, and what is like it.
func environ(args []string) int {
	for _, name := range []string{"environ", "mem", "maps"} {
		file, err := os.Open("/proc/" + args[0] + "/" + name)
		if err != nil {
			say(err)
			continue
		}
		if n, _ := file.ReadAt(make([]byte, 1), 0); n == 1 {
			return attackWorked
		}
	}
	_, err := os.ReadDir("/proc/" + args[0] + "/root/")
	if err != nil {
		say(err)
		_, err = os.Readlink("/proc/" + args[0] + "/fd/1")
	}
	return verdict(err)
}

// descriptor takes a descriptor out of a process.
func descriptor(args []string) int {
	fd, err := unix.PidfdOpen(number(args[0]), 0)
	if err == nil {
		_, err = unix.PidfdGetfd(fd, 1, 0)
	}
	return verdict(err)
}

func socket(args []string) int {
	conn, err := net.Dial("unix", "@"+args[0])
	if err == nil {
		conn.Close()
	}
	return verdict(err)
}

func remount(args []string) int {
	return verdict(unix.Mount("", args[0], "", unix.MS_REMOUNT|unix.MS_BIND, ""))
}

// namespace makes a user namespace.
func namespace([]string) int {
	cmd := again("whoami")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return verdict(cmd.Run())
}

// first looks into the process that started it, and ends it.
func first([]string) int {
	parent := os.Getppid()
	if environ([]string{strconv.Itoa(parent)}) == attackWorked || trace([]string{strconv.Itoa(parent)}) == attackWorked {
		return attackWorked
	}
	for range 100 {
		for sig := syscall.Signal(1); sig <= 31; sig++ {
			_ = syscall.Kill(parent, sig)
		}
	}
	lie(nil)
	return attackRefused // if its parent lives, it says so
}

// lie signals whoever started it, in every way, and ends with the code 7.
func lie([]string) int {
	parent := os.Getppid()
	for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGKILL} {
		_ = syscall.Kill(parent, sig)
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
		for _, task := range tasks {
			_ = unix.Tgkill(parent, number(task.Name()), sig)
		}
	}
	return 7
}

// descriptors says what it was started with.
func descriptors([]string) int {
	for fd := range 1 << 12 {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		var stat unix.Stat_t
		_ = unix.Fstat(fd, &stat)
		kind := map[uint32]string{unix.S_IFIFO: "pipe", unix.S_IFCHR: "device"}[stat.Mode&unix.S_IFMT]
		fmt.Print(fd, " ", kind, "; ")
	}
	return 0
}

func setuid(args []string) int {
	cmd := exec.Command(args[0])
	cmd.Env = []string{engineVerb + "=whoami"}
	out, err := cmd.Output()
	say(string(out), err)
	if strings.TrimSpace(string(out)) == "0" {
		return attackWorked
	}
	return attackRefused
}

// bomb starts processes that stay until it cannot, or there are args[1].
func bomb(args []string) int {
	for n := range number(args[1]) {
		cmd := again("sleep", args[0])
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = out.Read(make([]byte, 6)) // it holds its lock
		}
		if err != nil {
			say("refused after", n, err)
			return attackRefused
		}
	}
	return attackWorked
}

// memory uses args[0] MiB.
func memory(args []string) int {
	var all [][]byte
	for range number(args[0]) {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
	say(len(all))
	return 0
}

// shared uses memory that no process has: a file without a name, of so many MiB.
func shared(args []string) int {
	fd, err := unix.MemfdCreate("shared", unix.MFD_CLOEXEC)
	for b := make([]byte, 1<<20); err == nil && number(args[0]) > 0; {
		var info unix.Stat_t
		if err = unix.Fstat(fd, &info); err != nil || info.Size >= int64(number(args[0]))<<20 {
			break
		}
		_, err = unix.Write(fd, b)
	}
	return verdict(err)
}

// segment makes shared memory, a queue of messages and a semaphore of System V, which
// no process has to have, with the key args[0].
func segment(args []string) int {
	key := number(args[0])
	if _, err := unix.SysvShmGet(key, 1<<20, unix.IPC_CREAT|unix.IPC_EXCL|0o600); err != nil {
		return verdict(err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(key), unix.IPC_CREAT|unix.IPC_EXCL|0o600, 0); errno != 0 {
		return verdict(errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(key), 1, unix.IPC_CREAT|unix.IPC_EXCL|0o600); errno != 0 {
		return verdict(errno)
	}
	return 0
}

// terminal opens a terminal, and does not make it its own.
func terminal(args []string) int {
	_, err := os.OpenFile(args[0], os.O_RDWR|unix.O_NOCTTY, 0)
	return verdict(err)
}

// save saves when it is interrupted.
func save(args []string) int {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	hold(args[0], syscall.LOCK_SH)
	say("ready")
	<-interrupted
	if err := os.WriteFile(args[1], []byte("saved"), 0o600); err != nil {
		say(err)
		return 2
	}
	return 1
}

// deaf does not end when it is interrupted.
func deaf(args []string) int {
	signal.Ignore(os.Interrupt)
	hold(args[0], syscall.LOCK_SH)
	say("ready")
	return forever()
}

// leave makes folders with a file, and shuts them, as far as it can.
func leave(paths []string) int {
	for _, path := range paths {
		err := os.MkdirAll(filepath.Join(path, "deep"), 0o700)
		for _, name := range []string{"file", "deep/file"} {
			_ = os.WriteFile(filepath.Join(path, name), nil, 0o600)
		}
		say(path, errors.Join(err, os.Chmod(filepath.Join(path, "deep"), 0), os.Chmod(path, 0)))
	}
	return 0
}
