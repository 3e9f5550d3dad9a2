//go:build linux

package stage

import "syscall"

const (
	// Mark is the variable of the environment that makes a program this stage
	// ("1"), or the program of a probing start ("probe"), which ends with the
	// code ProbeCode at once.
	Mark = "HOLDFAST_SANDBOX_STAGE"

	// ProbeCode is the exit code of a probing start.
	ProbeCode = 42

	// Control is the descriptor that the stage reads: the Spec, then a byte
	// Interrupt for each SIGINT that the engine is to have. Its end is the end
	// of the starter, and so of everything here.
	Control = 3

	// Interrupt is what Control carries for a SIGINT.
	Interrupt = 'I'

	// Status is the descriptor that the stage writes records to.
	Status = 4
)

// The kinds of a record on the status descriptor: one byte, then two numbers.
// A failure is followed by the name of the step that failed, to the end.
const (
	RecordExit   = 'X' // wait status, peak memory of the engine in KiB
	RecordDead   = 'D' // nothing that the engine started is alive
	RecordFailed = 'E' // errno, length of the name
)

// RecordSize is the size of a record in bytes.
const RecordSize = 17

// What a mount of a Spec is.
const (
	ReadOnly = iota
	ReadWrite
	Device // a device of /dev: it stays one
)

// Spec is the input of the stage.
type Spec struct {
	Root       bool // a new root of Mounts, Links and Files, a /tmp and a /proc
	Namespace  bool // it is the first process of a process namespace
	UserMap    bool // it is in a user namespace whose map it writes: UID and GID
	Privileges bool // it is root, or has the capabilities of root in its namespace: all are dropped
	Confine    bool // no_new_privs
	Landlock   bool // Mounts are enforced by Landlock; it is in a domain that scopes signals
	UID, GID   int  // the engine's
	SetUser    bool // the engine is started as UID and GID
	CountUser  bool // Processes are counted for that user alone: the one of this process is not exempt, and has others

	Path  string
	Dir   string
	Args  []string // with the name of the program
	Env   []string
	Mount []Mount
	Link  []Link
	File  []File

	TmpSize   int64 // of /tmp, in bytes
	Data      int64 // RLIMIT_DATA; 0: no limit
	Processes int64 // RLIMIT_NPROC; 0: no limit
}

// Mount is a file or folder of the host and where the engine sees it.
type Mount struct {
	Source, Target string
	Kind           int
	Optional       bool // it may be missing
}

// Link is a symbolic link of the new root.
type Link struct{ Path, Target string }

// File is a file of the new root, for all to read.
type File struct{ Path, Content string }

// Encode returns s as the stage reads it.
func (s *Spec) Encode() []byte {
	e := encoder{}
	for _, b := range []bool{s.Root, s.Namespace, s.UserMap, s.Privileges, s.Confine, s.Landlock, s.SetUser, s.CountUser} {
		e.bool(b)
	}
	for _, n := range []int64{int64(s.UID), int64(s.GID), s.TmpSize, s.Data, s.Processes} {
		e.number(n)
	}
	e.string(s.Path)
	e.string(s.Dir)
	e.strings(s.Args)
	e.strings(s.Env)
	e.number(int64(len(s.Mount)))
	for _, m := range s.Mount {
		e.string(m.Source)
		e.string(m.Target)
		e.number(int64(m.Kind))
		e.bool(m.Optional)
	}
	e.number(int64(len(s.Link)))
	for _, l := range s.Link {
		e.string(l.Path)
		e.string(l.Target)
	}
	e.number(int64(len(s.File)))
	for _, f := range s.File {
		e.string(f.Path)
		e.string(f.Content)
	}
	head := encoder{}
	head.number(int64(len(e.b)))
	return append(head.b, e.b...)
}

// decode reads what Encode made, without its length.
func (s *Spec) decode(b []byte) bool {
	d := decoder{b: b}
	for _, v := range []*bool{&s.Root, &s.Namespace, &s.UserMap, &s.Privileges, &s.Confine, &s.Landlock, &s.SetUser, &s.CountUser} {
		*v = d.bool()
	}
	s.UID, s.GID = int(d.number()), int(d.number())
	s.TmpSize, s.Data, s.Processes = d.number(), d.number(), d.number()
	s.Path, s.Dir = d.string(), d.string()
	s.Args, s.Env = d.strings(), d.strings()
	for n := d.number(); n > 0 && !d.bad; n-- {
		s.Mount = append(s.Mount, Mount{Source: d.string(), Target: d.string(), Kind: int(d.number()), Optional: d.bool()})
	}
	for n := d.number(); n > 0 && !d.bad; n-- {
		s.Link = append(s.Link, Link{Path: d.string(), Target: d.string()})
	}
	for n := d.number(); n > 0 && !d.bad; n-- {
		s.File = append(s.File, File{Path: d.string(), Content: d.string()})
	}
	return !d.bad && len(d.b) == 0
}

// Record is a record of the status descriptor.
type Record struct {
	Kind byte
	A, B int64
	Step string // of RecordFailed
}

// Status returns the wait status of a RecordExit.
func (r Record) Status() syscall.WaitStatus { return syscall.WaitStatus(uint32(r.A)) }

// Records returns the whole records in b.
func Records(b []byte) []Record {
	var list []Record
	for len(b) >= RecordSize {
		d := decoder{b: b[1:]}
		r := Record{Kind: b[0], A: d.number(), B: d.number()}
		b = b[RecordSize:]
		if r.Kind == RecordFailed {
			n := min(max(int(r.B), 0), len(b))
			r.Step, b = string(b[:n]), b[n:]
		}
		list = append(list, r)
	}
	return list
}

func encodeRecord(kind byte, a, b int64) []byte {
	e := encoder{b: []byte{kind}}
	e.number(a)
	e.number(b)
	return e.b
}

type encoder struct{ b []byte }

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) number(v int64) {
	for i := range 8 {
		e.b = append(e.b, byte(uint64(v)>>(8*i)))
	}
}

func (e *encoder) string(s string) {
	e.number(int64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) strings(list []string) {
	e.number(int64(len(list)))
	for _, s := range list {
		e.string(s)
	}
}

// decoder reads what an encoder wrote; once bad, everything is zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int64) []byte {
	if d.bad || n < 0 || n > int64(len(d.b)) {
		d.bad = true
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return len(b) == 1 && b[0] == 1
}

func (d *decoder) number() int64 {
	var v uint64
	for i, c := range d.take(8) {
		v |= uint64(c) << (8 * i)
	}
	return int64(v)
}

func (d *decoder) string() string { return string(d.take(d.number())) }

func (d *decoder) strings() []string {
	var list []string
	for n := d.number(); n > 0 && !d.bad; n-- {
		list = append(list, d.string())
	}
	return list
}
