package sandbox

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Mode is by what a sandbox is held. See Modes.
type Mode string

// The modes.
const (
	// ModeSlots needs root: a user for each slot, namespaces, its own root.
	ModeSlots Mode = "slots"
	// ModeRange is ModeSlots inside a user namespace whose map root wrote: the
	// agent is not root outside of it. Package local starts such agents.
	ModeRange Mode = "range"
	// ModeUserNamespace is for a plain user where the kernel lets one make
	// namespaces. All sandboxes have the agent's user.
	ModeUserNamespace Mode = "user-namespace"
	// ModeLandlock is for a plain user on Linux 6.12 or later: what is not
	// named cannot be read, signalled or traced, but processes can be seen.
	ModeLandlock Mode = "landlock"
	// ModeUsers needs to change users, no more: a user for each slot, and what
	// the permissions of files hold.
	ModeUsers Mode = "users"
	// ModeNone holds nothing.
	ModeNone Mode = "none"
)

// Modes are all modes, strong ones first.
func Modes() []Mode {
	return []Mode{ModeSlots, ModeRange, ModeUserNamespace, ModeLandlock, ModeUsers, ModeNone}
}

// OwnRoot says whether the engine sees its own file system: then a Mount can have a
// Target, /tmp is private, and what is not mounted is absent.
func (m Mode) OwnRoot() bool {
	return m == ModeSlots || m == ModeRange || m == ModeUserNamespace
}

// OwnUser says whether the engine runs as the Slot's user, not as the agent's.
func (m Mode) OwnUser() bool { return m == ModeSlots || m == ModeRange || m == ModeUsers }

// CountsProcesses says whether Limits.Processes holds without control groups: the kernel counts
// the processes of a user in a user namespace. In other modes all runs, and the agent, are
// counted together, and the limit is left out.
func (m Mode) CountsProcesses() bool { return m.OwnUser() || m == ModeUserNamespace }

// Exposes returns through which file or folder an engine can read path because it has the
// agent's own user: one of more, which are absolute, or one that every sandbox finds. It is
// empty if there is none, and in modes in which the user does not matter: where each Slot
// has its own, the permissions of files hold, and in ModeNone nothing does. Links are followed.
func (m Mode) Exposes(path string, more ...string) string {
	if m != ModeUserNamespace && m != ModeLandlock {
		return ""
	}
	path = resolve(path)
	for _, shown := range slices.Concat(more, m.shown()) {
		if filepath.IsAbs(shown) && below(path, resolve(shown)) {
			return shown
		}
	}
	return ""
}

// resolve follows the links of an absolute path, of which the end need not exist.
func resolve(path string) string {
	path = filepath.Clean(path)
	for at := path; ; at = filepath.Dir(at) {
		if followed, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(followed, strings.TrimPrefix(path, at))
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// below says whether path is dir or in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// ErrUnavailable is in the error of Probe if the mode that was asked for, or
// any mode at all, does not work here.
var ErrUnavailable = errors.New("isolation is not available")

// ErrUserHeld is in the error of HoldUsers, and so of Probe, if a user that engines are to run
// as is in use.
var ErrUserHeld = errors.New("the users that engines run as are in use")

// Slot is who an engine is. The zero Slot is the agent's own user; modes for
// which OwnUser holds need another one.
type Slot struct{ UID, GID int }

// Mount is a file or folder that an engine sees, with all that is mounted
// below it. Nobody who is not trusted may be able to write the folders that
// lead to Source: links on the way are followed.
type Mount struct {
	Source   string // absolute
	Target   string // absolute; empty means Source, and so it is where the mode has no root of its own
	Writable bool
	Optional bool // a Source that is missing is not an error
}

// Limits bound one start with everything below it. Zero means no limit.
type Limits struct {
	Memory    int64 // bytes
	Processes int   // with threads
	CPU       float64
}

// Command is one start of an engine.
type Command struct {
	Path string            // absolute, as the engine's side sees it; it need not be in Mounts
	Args []string          // without the name of the program
	Env  map[string]string // the whole environment
	Dir  string            // absolute, as the engine's side sees it

	Slot    Slot
	Mounts  []Mount
	TmpSize int64         // of a /tmp of its own, in bytes; zero means 1 GiB
	Limits  Limits        //
	Grace   time.Duration // from SIGINT to SIGKILL after ctx ended; zero: no SIGINT

	Stdout, Stderr io.Writer // nil discards
}

// Verdict is how sure something is.
type Verdict string

// The verdicts.
const (
	No       Verdict = "" // nothing says so
	Probably Verdict = "probably"
	Yes      Verdict = "yes" // the kernel counted it
)

// Exit is how an engine ended.
type Exit struct {
	Code   int            // -1 if a signal ended it
	Signal syscall.Signal // 0 if none did

	OutOfMemory    Verdict // something in it hit Limits.Memory
	OutOfProcesses Verdict // something in it hit Limits.Processes
	PeakMemory     int64   // bytes, of the largest process that was waited for; 0 if not known
}

// Refusal is why a mode does not work here.
type Refusal struct {
	Mode Mode
	Err  error
}

// refusals is an error that says why modes do not work.
func refusals(list []Refusal) error {
	var said []string
	for _, r := range list {
		said = append(said, fmt.Sprintf("%s: %v", r.Mode, r.Err))
	}
	return fmt.Errorf("%w: %s", ErrUnavailable, strings.Join(said, "; "))
}
