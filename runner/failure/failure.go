package failure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// Error is why an attempt did not do what it was for.
type Error struct {
	Cause       holdfast.Reason
	Hint        string
	Transient   bool
	Err         error  // what happened, in a line
	Detail      string // more of it
	Address     string // of the resource that it is about; empty: of none, or unknown
	Diagnostics []holdfast.Diagnostic
	Exit        *ExitError // how the engine ended; nil if it is not about one
	NotBegun    bool       // the apply was not begun, as it might not
	Killed      bool       // the engine died by a signal that we did not send
	Unanswered  bool       // a provider died before it had answered the engine
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// OfRelease adds a hint to why an engine did not release a lock by its ID: the lock may be
// gone, since most backends release no other one.
func OfRelease(err error) error {
	var known *Error
	if errors.As(err, &known) && known.Cause == holdfast.CauseStateBackend && !known.Transient {
		known.Hint = "the lock may be gone already, or another one may be held by now; if not, " + known.Hint
	}
	return err
}

// NoLeave is why a waiting apply was not begun: unkept, if what has to outlast it could
// not be written to disk, or else the server's reason.
func NoLeave(unkept error) *Error {
	if unkept == nil {
		return &Error{
			Cause: holdfast.ReasonLeaseLost, Transient: true, NotBegun: true,
			Err: errors.New("apply: not begun, the server did not confirm the lock in time"),
		}
	}
	return &Error{
		Cause: holdfast.CauseWorkspaceFailed, Transient: true, NotBegun: true,
		Err: fmt.Errorf("apply: not begun, its records cannot be written to disk: %w", unkept),
	}
}

// OfEngine derives from an engine's error stream why it failed. If there is anything
// that the engine calls an error, only that counts.
func OfEngine(step, said string, exit error) *Error {
	said = colours.ReplaceAllString(said, "")
	e := &Error{Diagnostics: diagnosticsIn(said), Unanswered: providerDied.MatchString(unwrapped(said))}
	var errs []holdfast.Diagnostic
	for _, d := range e.Diagnostics {
		if d.Severity == "error" {
			errs = append(errs, d)
		}
	}
	var found Symptom
	summary := lastLine(said)
	if len(errs) > 0 {
		var at int
		at, found = deciding(errs)
		summary, e.Detail, e.Address = errs[at].Summary, errs[at].Detail, errs[at].Address
	} else {
		found = Diagnose(Tail(said, 8<<10))
		e.Detail = Tail(strings.TrimSpace(said), 2<<10)
	}
	if summary == "" {
		summary = exit.Error()
	}
	if found.Cause == holdfast.CauseProviderCrashed && stackTrace.MatchString(said) {
		found.Transient, found.Hint = false, hintProvider
	}
	e.Err = fmt.Errorf("%s: %s", step, summary)
	e.Cause, e.Transient, e.Hint = found.Cause, found.Transient, found.Hint
	var status *ExitError
	if errors.As(exit, &status) && status.Signal != 0 {
		e.Killed, e.Cause, e.Transient = true, holdfast.ReasonEngineKilled, true
		e.Err = fmt.Errorf("%s: the engine was %w", step, exit)
		e.Hint = "the system killed it, most often because memory ran out: " + HintMemory
	}
	return e
}

// colours are the sequences by which engines colour parts of what they say in spite
// of -no-color, such as that a state was not saved.
var colours = lazily("\x1b\\[[0-9:;<=>?]*[ -/]*[@-~]")

// RefusedPush is what engines say of a state that does not follow the backend's.
var RefusedPush = lazily(`(?i)cannot (import|overwrite|replace)[^.]*(lineage|serial|state)|import a state file with`)

var stackTrace = lazily(`(?m)Stack trace from the |plugin crashed!|^panic: `)

// Limits of what is reported of one failure.
const (
	maxDiagnostics      = 20
	MaxDiagnosticDetail = 4 << 10
	maxSnippet          = 2 << 10
)

var (
	diagnosticStart = lazily(`^(Error|Warning): (.*)$`)
	diagnosticWith  = lazily(`^\s+with ((?:module|data|provider|[a-z][a-z0-9_]*)[.\[].+),$`)
	diagnosticOn    = lazily(`^\s+on (.+) line (\d+)(?:, in .*)?:?$`)
	diagnosticCode  = lazily(`^\s+(\d+:|[├└]|│ ).*$`)
)

// diagnosticsIn reads the errors and warnings out of an engine's text.
func diagnosticsIn(text string) []holdfast.Diagnostic {
	var list []holdfast.Diagnostic
	var detail, code []string
	flush := func() {
		if len(list) > 0 {
			list[len(list)-1].Snippet = Head(strings.Join(code, "\n"), maxSnippet)
			list[len(list)-1].Detail = Head(strings.TrimSpace(strings.Join(detail, "\n")), MaxDiagnosticDetail)
		}
		detail, code = nil, nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "╷" || line == "╵" {
			continue
		}
		if framed, ok := strings.CutPrefix(line, "│"); ok {
			line = strings.TrimPrefix(framed, " ")
		}
		if m := diagnosticStart.FindStringSubmatch(line); m != nil {
			flush()
			if len(list) == maxDiagnostics {
				return list
			}
			list = append(list, holdfast.Diagnostic{Severity: strings.ToLower(m[1]), Summary: Head(m[2], MaxDiagnosticDetail)})
			continue
		}
		if len(list) == 0 {
			continue
		}
		d := &list[len(list)-1]
		switch {
		case diagnosticWith.MatchString(line) && d.Address == "" && d.File == "":
			d.Address = diagnosticWith.FindStringSubmatch(line)[1]
		case diagnosticOn.MatchString(line) && d.File == "":
			m := diagnosticOn.FindStringSubmatch(line)
			d.File = m[1]
			d.Line, _ = strconv.Atoi(m[2])
		case diagnosticCode.MatchString(line) && d.File != "":
			code = append(code, strings.TrimPrefix(line, "  "))
		default:
			detail = append(detail, line)
		}
	}
	flush()
	return list
}

// Head returns the beginning of s, at most n bytes.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Tail returns the end of s, at most n bytes.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-n:], "")
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return Head(s[strings.LastIndexByte(s, '\n')+1:], 500)
}

// DiskFull reports whether a file could not be written for want of space.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// LocalFault reports whether an error is trouble of this machine, such as a disk that
// is full, broken or read-only: it says nothing of what was read or written.
func LocalFault(err error) bool {
	return DiskFull(err) || slices.ContainsFunc(localFaults, func(fault syscall.Errno) bool { return errors.Is(err, fault) })
}

var localFaults = []syscall.Errno{ //nolint:gochecknoglobals // a constant list
	syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
}

// StopReason returns why ctx ended, and the message for it.
func StopReason(ctx context.Context) (reason holdfast.Reason, detail string) {
	var stop *StopError
	cause := context.Cause(ctx)
	switch {
	case errors.As(cause, &stop) && stop.Reason != "":
		return stop.Reason, stop.Detail
	case errors.Is(cause, context.DeadlineExceeded):
		return holdfast.ReasonTimeout, ""
	default:
		return holdfast.ReasonCanceled, ""
	}
}

// StopStatus returns the status of a run that was stopped for the reason.
func StopStatus(reason holdfast.Reason) holdfast.RunStatus {
	switch reason {
	case holdfast.ReasonTimeout:
		return holdfast.RunErrored
	case holdfast.ReasonLeaseLost, holdfast.ReasonAgentKilled, holdfast.ReasonEngineKilled:
		return holdfast.RunInterrupted
	default:
		return holdfast.RunCanceled
	}
}

// ExitError says how an engine ended that did not end well.
type ExitError struct {
	Code   int            // -1 if a signal ended it
	Signal syscall.Signal // 0 if none did

	Memory, Processes sandbox.Verdict // whether it hit that limit of the run
}

func (e *ExitError) Error() string {
	if e.Signal != 0 {
		return fmt.Sprintf("killed by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Crashed reports whether the engine ended otherwise than with 1, as engines do that
// report an error: it had no chance to save what it had done.
func (e *ExitError) Crashed() bool { return e.Code != 1 }

// LimitHit turns a failure into that of a limit, if the run has hit one.
func (e *Error) LimitHit(exit *ExitError) {
	if exit == nil {
		return
	}
	var what string
	var cause holdfast.Reason
	var verdict sandbox.Verdict
	switch {
	case exit.Memory != sandbox.No:
		what, cause, verdict = "memory", holdfast.CauseOutOfMemory, exit.Memory
	case exit.Processes != sandbox.No:
		what, cause, verdict = "processes", holdfast.CauseTooManyProcesses, exit.Processes
	default:
		return
	}
	word := "the run hit its limit of " + what
	if verdict == sandbox.Probably {
		word = "the run probably hit its limit of " + what
	}
	e.Detail = strings.TrimSpace(word + "\n\n" + e.Detail)
	e.Cause, e.Transient, e.Killed = cause, false, false
	e.Err = fmt.Errorf("%w: %s", e.Err, word)
	e.Hint = fmt.Sprintf("raise runs.limits.%s in holdfast.yaml, for all or for this project or cluster under runs.limits.overrides; or spec.limits.%s of the cluster, within runs.limits.max", what, what)
}

// StopError is the cause with which an attempt's context is canceled.
type StopError struct {
	Reason holdfast.Reason // holdfast.ReasonCanceled, ReasonTimeout, ReasonLeaseLost or ReasonAgentKilled
	Detail string          // in words, for people; may be empty
}

// Error returns the reason and the detail.
func (e *StopError) Error() string {
	if e.Detail == "" {
		return string(e.Reason)
	}
	return string(e.Reason) + ": " + e.Detail
}

// ErrTooLarge is in the error of an artefact that has more bytes than are accepted.
var ErrTooLarge = errors.New("too large")

// shownWords is how many of many words are shown.
const shownWords = 10

// Some joins the first of many words.
func Some(words []string) string {
	more := ""
	if n := len(words) - shownWords; n > 0 {
		words, more = words[:shownWords], fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(words, "; ") + more
}
