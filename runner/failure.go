package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// attemptError is why an attempt did not do what it was for.
type attemptError struct {
	cause       holdfast.Reason
	hint        string
	transient   bool
	err         error  // what happened, in a line
	detail      string // more of it
	address     string // of the resource that it is about; empty: of none, or unknown
	diagnostics []holdfast.Diagnostic
	exit        *exitError // how the engine ended; nil if it is not about one
	notBegun    bool       // the apply was not begun, as it might not
	killed      bool       // the engine died by a signal that we did not send
}

func (e *attemptError) Error() string { return e.err.Error() }

func (e *attemptError) Unwrap() error { return e.err }

// engineError reads out of what an engine said on its error stream why it
// failed. Only what it calls errors is looked at, if there is any.
func engineError(step, said string, exit error) *attemptError {
	said = colours.ReplaceAllString(said, "")
	e := &attemptError{diagnostics: diagnosticsIn(said)}
	var errs []holdfast.Diagnostic
	for _, d := range e.diagnostics {
		if d.Severity == "error" {
			errs = append(errs, d)
		}
	}
	var found symptom
	summary := lastLine(said)
	if len(errs) > 0 {
		var at int
		at, found = deciding(errs)
		summary, e.detail, e.address = errs[at].Summary, errs[at].Detail, errs[at].Address
	} else {
		found = diagnose(tail(said, 8<<10))
		e.detail = tail(strings.TrimSpace(said), 2<<10)
	}
	if summary == "" {
		summary = exit.Error()
	}
	if found.cause == holdfast.CauseProviderCrashed && stackTrace.MatchString(said) {
		found.transient, found.hint = false, hintProvider
	}
	e.err = fmt.Errorf("%s: %s", step, summary)
	e.cause, e.transient, e.hint = found.cause, found.transient, found.hint
	var status *exitError
	if errors.As(exit, &status) && status.signal != 0 {
		e.killed, e.cause, e.transient = true, holdfast.ReasonEngineKilled, true
		e.err = fmt.Errorf("%s: the engine was %w", step, exit)
		e.hint = "nobody told it to end; mostly that is for want of memory: " + hintMemory
	}
	return e
}

// colours are the sequences by which engines colour parts of what they say in spite
// of -no-color, such as that a state was not saved.
var colours = regexp.MustCompile("\x1b\\[[0-9:;<=>?]*[ -/]*[@-~]")

// refusedPush is what engines say of a state that does not follow the backend's.
var refusedPush = regexp.MustCompile(`(?i)cannot (import|overwrite|replace)[^.]*(lineage|serial|state)|import a state file with`)

var stackTrace = regexp.MustCompile(`(?m)Stack trace from the |plugin crashed!|^panic: `)

// Limits of what is reported of one failure.
const (
	maxDiagnostics      = 20
	maxDiagnosticDetail = 4 << 10
	maxSnippet          = 2 << 10
)

var (
	diagnosticStart = regexp.MustCompile(`^(Error|Warning): (.*)$`)
	diagnosticWith  = regexp.MustCompile(`^\s+with ((?:module|data|provider|[a-z][a-z0-9_]*)[.\[].+),$`)
	diagnosticOn    = regexp.MustCompile(`^\s+on (.+) line (\d+)(?:, in .*)?:?$`)
	diagnosticCode  = regexp.MustCompile(`^\s+(\d+:|[├└]|│ ).*$`)
)

// diagnosticsIn reads the errors and warnings out of an engine's text.
func diagnosticsIn(text string) []holdfast.Diagnostic {
	var list []holdfast.Diagnostic
	var detail, code []string
	flush := func() {
		if len(list) > 0 {
			list[len(list)-1].Snippet = head(strings.Join(code, "\n"), maxSnippet)
			list[len(list)-1].Detail = head(strings.TrimSpace(strings.Join(detail, "\n")), maxDiagnosticDetail)
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
			list = append(list, holdfast.Diagnostic{Severity: strings.ToLower(m[1]), Summary: head(m[2], maxDiagnosticDetail)})
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

func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-n:], "")
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return head(s[strings.LastIndexByte(s, '\n')+1:], 500)
}

// diskFull reports whether a file could not be written for want of space.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// stopReason returns why ctx ended, and the words for it.
func stopReason(ctx context.Context) (reason holdfast.Reason, detail string) {
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

// stopStatus returns the status of a run that was stopped for the reason.
func stopStatus(reason holdfast.Reason) holdfast.RunStatus {
	switch reason {
	case holdfast.ReasonTimeout:
		return holdfast.RunErrored
	case holdfast.ReasonLeaseLost, holdfast.ReasonAgentKilled, holdfast.ReasonEngineKilled:
		return holdfast.RunInterrupted
	default:
		return holdfast.RunCanceled
	}
}

// exitError says how an engine ended that did not end well.
type exitError struct {
	code   int            // -1 if a signal ended it
	signal syscall.Signal // 0 if none did

	memory, processes sandbox.Verdict // whether it hit that limit of the run
}

func (e *exitError) Error() string {
	if e.signal != 0 {
		return fmt.Sprintf("killed by signal %d (%s)", int(e.signal), e.signal)
	}
	return fmt.Sprintf("exit status %d", e.code)
}

// limitHit makes a failure one of a limit, if the run has hit one.
func (e *attemptError) limitHit(exit *exitError) {
	if exit == nil {
		return
	}
	var what string
	var cause holdfast.Reason
	var verdict sandbox.Verdict
	switch {
	case exit.memory != sandbox.No:
		what, cause, verdict = "memory", holdfast.CauseOutOfMemory, exit.memory
	case exit.processes != sandbox.No:
		what, cause, verdict = "processes", holdfast.CauseTooManyProcesses, exit.processes
	default:
		return
	}
	word := "the run hit its limit of " + what
	if verdict == sandbox.Probably {
		word = "the run probably hit its limit of " + what
	}
	e.detail = strings.TrimSpace(word + "\n\n" + e.detail)
	e.cause, e.transient, e.killed = cause, false, false
	e.err = fmt.Errorf("%w: %s", e.err, word)
	e.hint = fmt.Sprintf("raise runs.limits.%s in holdfast.yaml, for all or for this project or cluster under runs.limits.overrides; or spec.limits.%s of the cluster, within runs.limits.max", what, what)
}

// StopError is the cause with which an attempt's context is cancelled.
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

// errTooLarge is in the error of a limitedReader.
var errTooLarge = errors.New("too large")
