package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Causes of failures. They are stable: people see them, metrics count them.
const (
	causeBundle       = "BundleUnusable"
	causeNoEngine     = "NoEngine"
	causeDownload     = "DownloadFailed"
	causeConfig       = "InvalidConfiguration"
	causeCredentials  = "Credentials"
	causeQuota        = "Quota"
	causeThrottled    = "Throttled"
	causeNetwork      = "Network"
	causeUnavailable  = "ServiceUnavailable"
	causeStateLocked  = "StateLocked"
	causeDiskFull     = "DiskFull"
	causeBadPlan      = "UnreadablePlan"
	causeArtefact     = "ArtefactUnavailable"
	causeStalePlan    = "StalePlan"
	causeEngine       = "EngineFailed"
	causeWorkspace    = "WorkspaceFailed"
	causeInternal     = "Internal"
	causeStateUnsaved = "StateUnsaved"
)

// attemptError is why an attempt did not do what it was for.
type attemptError struct {
	cause       string
	hint        string
	transient   bool
	err         error  // what happened, in a line
	detail      string // more of it
	diagnostics []holdfast.Diagnostic
	exit        *exitError // how the engine ended; nil if it is not about one
	notBegun    bool       // the apply was not begun, as it might not
	killed      bool       // the engine died by a signal that we did not send
}

func (e *attemptError) Error() string { return e.err.Error() }

func (e *attemptError) Unwrap() error { return e.err }

// symptom is a pattern in what an engine says, and what it means.
type symptom struct {
	pattern   *regexp.Regexp
	cause     string
	transient bool
	hint      string
}

// symptoms in the order in which they are looked for: the first that fits
// counts, so the more telling ones come first.
var symptoms = []symptom{ //nolint:gochecknoglobals // a constant table
	{regexp.MustCompile(`(?i)saved plan is stale`), causeStalePlan, false, ""},
	{
		regexp.MustCompile(`(?i)error acquiring the state lock|state blob is already locked|state is already locked`),
		causeStateLocked, true, "somebody else works on this state; if nobody does, `holdfast unlock` shows and frees the lock",
	},
	{regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`), causeDiskFull, true, "free space on the agent's disk"},
	{
		regexp.MustCompile(`(?i)throttl|rate exceeded|too many requests|RequestLimitExceeded|SlowDown|rateLimitExceeded|rate limit|(status|code|http)\D{0,12}429\b`),
		causeThrottled, true, "",
	},
	{
		regexp.MustCompile(`(?i)\bquota|limit ?exceeded|VcpuLimit|InsufficientInstanceCapacity|QuotaFailure`),
		causeQuota, false, "raise the quota, or ask for less",
	},
	{
		regexp.MustCompile(`(?i)no valid credential|ExpiredToken|InvalidClientTokenId|SignatureDoesNotMatch|AccessDenied|UnauthorizedOperation|AuthorizationFailed|not authorized to perform|could not find default credentials|invalid_grant|authentication (failed|required)|unable to authenticate|credentials? (are|is) (invalid|expired)|(status|code|http)\D{0,12}40[13]\b`),
		causeCredentials, false, "check the credentials that the runner's configuration binds to this project and environment",
	},
	{
		regexp.MustCompile(`(?i)service unavailable|bad gateway|gateway time-?out|internal server error|(status|code|http)\D{0,12}50[0-4]\b|ServerError|RequestTimeout`),
		causeUnavailable, true, "",
	},
	{
		regexp.MustCompile(`(?i)connection refused|connection reset|connection timed out|no such host|i/o timeout|TLS handshake timeout|network is unreachable|no route to host|temporary failure in name resolution|unexpected EOF|context deadline exceeded|Client\.Timeout|giving up after \d+ attempt|could not connect to|could not resolve host|timed? ?out waiting`),
		causeNetwork, true, "",
	},
	{
		regexp.MustCompile(`(?i)\b(invalid|unsupported|undeclared|missing|duplicate|inconsistent|unreadable)\b|not been declared|is required|no value for required variable|cycle:|does not match configured version constraint|no available releases match`),
		causeConfig, false, "",
	},
}

// engineError reads out of what an engine said on its error stream why it
// failed. Only what it calls errors is looked at, if there is any.
func engineError(step, said string, exit error) *attemptError {
	e := &attemptError{cause: causeEngine, diagnostics: diagnosticsIn(said)}
	var text strings.Builder
	var first string
	for _, d := range e.diagnostics {
		if d.Severity != "error" {
			continue
		}
		if first == "" {
			first = d.Summary
			e.detail = d.Detail
		}
		text.WriteString(d.Summary + "\n" + d.Detail + "\n")
	}
	if first == "" {
		first = lastLine(said)
		text.WriteString(tail(said, 8<<10))
		e.detail = tail(strings.TrimSpace(said), 2<<10)
	}
	if first == "" {
		first = exit.Error()
	}
	e.err = fmt.Errorf("%s: %s", step, first)
	for _, s := range symptoms {
		if s.pattern.MatchString(text.String()) {
			e.cause, e.transient, e.hint = s.cause, s.transient, s.hint
			break
		}
	}
	var status *exitError
	if errors.As(exit, &status) && status.signal != 0 {
		e.killed, e.cause, e.transient = true, holdfast.ReasonEngineKilled, true
		e.err = fmt.Errorf("%s: the engine was %w", step, exit)
		e.hint = "the machine may be out of memory"
	}
	return e
}

// Limits of what is told of one failure.
const (
	maxDiagnostics      = 20
	maxDiagnosticDetail = 4 << 10
)

var (
	diagnosticStart = regexp.MustCompile(`^(Error|Warning): (.*)$`)
	diagnosticWith  = regexp.MustCompile(`^\s+with (.+),$`)
	diagnosticOn    = regexp.MustCompile(`^\s+on (.+) line (\d+)(?:, in .*)?:?$`)
	diagnosticCode  = regexp.MustCompile(`^\s+(\d+:|[├└]|│ ).*$`)
)

// diagnosticsIn reads the errors and warnings out of an engine's text.
func diagnosticsIn(text string) []holdfast.Diagnostic {
	var list []holdfast.Diagnostic
	var detail []string
	flush := func() {
		if len(list) > 0 {
			list[len(list)-1].Detail = head(strings.TrimSpace(strings.Join(detail, "\n")), maxDiagnosticDetail)
		}
		detail = nil
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
		case diagnosticWith.MatchString(line) && d.Address == "" && len(detail) <= 1:
			d.Address = diagnosticWith.FindStringSubmatch(line)[1]
		case diagnosticOn.MatchString(line) && d.File == "":
			m := diagnosticOn.FindStringSubmatch(line)
			d.File = m[1]
			d.Line, _ = strconv.Atoi(m[2])
		case diagnosticCode.MatchString(line) && d.File != "":
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

// stopReason returns why ctx ended, and the words for it.
func stopReason(ctx context.Context) (reason, detail string) {
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
func stopStatus(reason string) holdfast.RunStatus {
	switch reason {
	case holdfast.ReasonTimeout:
		return holdfast.RunErrored
	case holdfast.ReasonLeaseLost, holdfast.ReasonAgentKilled, holdfast.ReasonEngineKilled:
		return holdfast.RunInterrupted
	default:
		return holdfast.RunCanceled
	}
}
