//go:build linux

package stage

import (
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

func init() {
	switch mark, _ := syscall.Getenv(Mark); mark {
	case "1":
		run()
		syscall.Exit(0)
	case "probe":
		syscall.Exit(ProbeCode)
	}
}

// engine is the process of the engine.
var engine struct {
	sync.Mutex
	pid  int  // 0 when there is none to signal
	over bool // the starter is gone: nothing is to be started
}

// killEngine kills the domain or the user of the engine, from a thread that
// can: see confine. Nil in a process namespace, whose end is everybody's.
var killEngine func()

// run is the whole stage. Its exit code means nothing: only what it writes to
// the status descriptor does.
func run() {
	_ = prctl(syscall.PR_SET_DUMPABLE, 0, 0)
	closeOnExec()
	ignoreSignals()
	spec, ok := readSpec()
	if !ok {
		fail("read what to start", syscall.EBADMSG)
		return
	}
	if step, errno := prepare(spec); errno != 0 {
		fail(step, errno)
		return
	}
	if spec.Namespace {
		// The starter's death is this process's, and this process's everybody's.
		step, errno := begin(spec)
		if errno != 0 {
			fail(step, errno)
			return
		}
		go followStarter(spec)
		reap(spec)
		return
	}
	go followStarter(spec)
	if step, errno := beginApart(spec); errno != 0 {
		fail(step, errno)
		return
	}
	reap(spec)
}

// prepare makes the namespaces that this process is in a sandbox.
func prepare(spec *Spec) (string, syscall.Errno) {
	if spec.UserMap {
		if step, errno := mapUser(spec.UID, spec.GID); errno != 0 {
			return step, errno
		}
	}
	if spec.Root {
		if step, errno := newRoot(spec); errno != 0 {
			return step, errno
		}
	}
	if !spec.Namespace {
		// Orphans of the engine become children of this process.
		if errno := prctl(prSetChildSubreaper, 1, 0); errno != 0 {
			return "adopt orphans", errno
		}
	}
	return "", 0
}

// begin starts the engine, as the calling thread is once it is confined.
func begin(spec *Spec) (string, syscall.Errno) {
	if step, errno := confine(spec); errno != 0 {
		return step, errno
	}
	attr := &syscall.ProcAttr{
		Dir: spec.Dir, Env: spec.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}, // this thread lives as long as the process
	}
	if spec.SetUser {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(spec.UID), Gid: uint32(spec.GID)}
		for fd := 1; fd <= 2; fd++ {
			_ = syscall.Fchown(fd, spec.UID, spec.GID) // so that /dev/stdout can be opened
		}
	}
	engine.Lock()
	defer engine.Unlock()
	if engine.over {
		return "start " + spec.Path, syscall.ECANCELED
	}
	counted, errno := countUser(spec)
	if errno != 0 {
		return "limit processes", errno
	}
	pid, err := syscall.ForkExec(spec.Path, spec.Args, attr)
	if err != nil {
		return "start " + spec.Path + " in " + spec.Dir, toErrno(err)
	}
	if errno := counted(pid); errno != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return "limit processes", errno
	}
	engine.pid = pid
	return "", 0
}

// beginApart starts the engine from its own thread, whose privileges, and Landlock
// domain, are the engine's and not those of this process. It alone can end what the
// engine leaves.
func beginApart(spec *Spec) (string, syscall.Errno) {
	type begun struct {
		step  string
		errno syscall.Errno
	}
	done, kill := make(chan begun), make(chan chan struct{})
	killEngine = func() {
		reply := make(chan struct{})
		kill <- reply
		<-reply
	}
	go func() {
		runtime.LockOSThread()
		step, errno := begin(spec)
		done <- begun{step, errno}
		for reply := range kill {
			killDomain(spec)
			close(reply)
		}
	}()
	b := <-done
	return b.step, b.errno
}

// reap waits for whatever dies until the engine does, says how it ended, and
// ends what the engine left. In a process namespace that is the kernel's work.
func reap(spec *Spec) {
	engine.Lock()
	pid := engine.pid
	engine.Unlock()
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		got, err := syscall.Wait4(-1, &status, 0, &usage)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			fail("wait for the engine", toErrno(err))
			return
		}
		if got != pid || !status.Exited() && !status.Signaled() {
			continue
		}
		engine.Lock()
		engine.pid = 0
		engine.Unlock()
		write(encodeRecord(RecordExit, int64(status), usage.Maxrss))
		break
	}
	if !spec.Namespace {
		endAll()
		write(encodeRecord(RecordDead, 0, 0))
	}
}

// endAll returns when this process has no descendants.
func endAll() {
	for {
		killEngine()
		for {
			var status syscall.WaitStatus
			got, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			if err == syscall.EINTR || got > 0 {
				continue
			}
			if err == syscall.ECHILD {
				return
			}
			break
		}
		_, _ = syscall.Select(0, nil, nil, nil, &syscall.Timeval{Usec: 500})
	}
}

// followStarter carries out what the starter says until it is gone: then everything
// here ends.
func followStarter(spec *Spec) {
	var b [1]byte
	for {
		n, err := syscall.Read(Control, b[:])
		if err == syscall.EINTR {
			continue
		}
		if n != 1 || err != nil {
			if spec.Namespace {
				syscall.Exit(0) // the kernel kills the rest
			}
			engine.Lock()
			engine.over = true
			if engine.pid != 0 {
				_ = syscall.Kill(engine.pid, syscall.SIGKILL)
			}
			engine.Unlock()
			return // the main thread sees the engine's end, and ends the rest
		}
		if b[0] == Interrupt {
			engine.Lock()
			if engine.pid != 0 {
				_ = syscall.Kill(engine.pid, syscall.SIGINT)
			}
			engine.Unlock()
		}
	}
}

// readSpec reads the Spec from the control descriptor.
func readSpec() (*Spec, bool) {
	head := make([]byte, 8)
	if !readFull(head) {
		return nil, false
	}
	d := decoder{b: head}
	size := d.number()
	if size < 0 || size > 16<<20 {
		return nil, false
	}
	body := make([]byte, size)
	if !readFull(body) {
		return nil, false
	}
	spec := &Spec{}
	return spec, spec.decode(body)
}

func readFull(b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Read(Control, b)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return false
		}
		b = b[n:]
	}
	return true
}

func fail(step string, errno syscall.Errno) {
	write(append(encodeRecord(RecordFailed, int64(errno), int64(len(step))), step...))
}

func write(b []byte) {
	for len(b) > 0 {
		n, err := syscall.Write(Status, b)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return
		}
		b = b[n:]
	}
}

// closeOnExec keeps every descriptor but 0, 1 and 2 from the engine.
func closeOnExec() {
	_, _, errno := syscall.RawSyscall(sysCloseRange, 3, 1<<32-1, closeRangeCloexec)
	if errno != 0 {
		for fd := 3; fd < 1<<16; fd++ {
			syscall.CloseOnExec(fd)
		}
	}
}

// ignoreSignals gives up the handlers of the Go runtime, so that an engine with
// the same user cannot end or confuse this process. The runtime gives what it
// starts the default again for each of them. Those that it does not handle
// have the default here, too, which the first process of a namespace ignores.
func ignoreSignals() {
	const sigIgnore = 1
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if sig == syscall.SIGURG || sig == syscall.SIGCHLD { // the runtime's own, harmless; what ignores it has no children to wait for
			continue
		}
		var old, action [4]uintptr // handler, flags, restorer, mask
		sigaction(sig, nil, &old)
		if old[0] > sigIgnore {
			action[0] = sigIgnore
			sigaction(sig, &action, nil)
		}
	}
}

func sigaction(sig syscall.Signal, action, old *[4]uintptr) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(action)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
}

func prctl(option int, a, b uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, uintptr(option), a, b, 0, 0, 0)
	return errno
}
