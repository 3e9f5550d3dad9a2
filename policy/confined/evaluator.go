package confined

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/policy"
	"github.com/holdfast-dev/holdfast/protocol"
)

// CommandName is the hidden command of this program by which it is started again: it has to
// call Serve.
const CommandName = "evaluate-policies"

// Options bound an evaluation. The zero value is good for a plan of some thousand resources.
type Options struct {
	Program []string      // the program and its arguments; empty means this one, with CommandName
	Memory  int64         // bytes; zero means 512 MiB
	Timeout time.Duration // for all policies of a plan; zero means 30 s
	Output  int64         // bytes of a report; zero means 4 MiB
	Limits  policy.Limits // of each policy, and of what is reported
}

// Evaluator evaluates policies. It is safe for concurrent use.
type Evaluator struct{ opts Options }

// New returns an Evaluator.
func New(opts Options) (*Evaluator, error) {
	if len(opts.Program) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find program: %w", err)
		}
		opts.Program = []string{self, CommandName}
	}
	if opts.Memory == 0 {
		opts.Memory = 512 << 20
	}
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	if opts.Output == 0 {
		opts.Output = 4 << 20
	}
	return &Evaluator{opts: opts}, nil
}

// envelope is what the process is given before the plan.
type envelope struct {
	protocol.AssignedPolicies
	Limits  policy.Limits `json:"limits"`
	Memory  int64         `json:"memory"`
	Seconds int64         `json:"seconds"` // of processor time
}

// line is a line that the process writes.
type line struct {
	Begins string                 `json:"begins,omitempty"` // the policy that is evaluated now
	Report *holdfast.PolicyReport `json:"report,omitempty"` // the last line
	Error  string                 `json:"error,omitempty"`  // the plan cannot be read
}

// Evaluate evaluates policies over a plan, as `show -json` of an engine prints it. Whatever a
// policy does is in the report; an error is about the plan, the machine, or ctx.
func (e *Evaluator) Evaluate(ctx context.Context, policies protocol.AssignedPolicies, plan io.Reader) (holdfast.PolicyReport, error) {
	head, err := json.Marshal(envelope{
		AssignedPolicies: policies, Limits: e.opts.Limits, Memory: e.opts.Memory, Seconds: int64(e.opts.Timeout.Seconds())*4 + 1,
	})
	if err != nil {
		return holdfast.PolicyReport{}, fmt.Errorf("evaluate policies: %w", err)
	}
	limited, stop := context.WithTimeout(ctx, e.opts.Timeout)
	defer stop()
	cmd := exec.CommandContext(limited, e.opts.Program[0], e.opts.Program[1:]...)
	confine(cmd)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = []string{"GOTRACEBACK=none"}
	cmd.Dir = "/"
	cmd.Stdin = io.MultiReader(strings.NewReader(fmt.Sprintf("%d\n", len(head))), bytes.NewReader(head), plan)
	out, said := &bounded{limit: e.opts.Output, full: stop}, &bounded{limit: 8 << 10}
	cmd.Stdout, cmd.Stderr = out, said
	runtime.LockOSThread() // the process ends with the thread that has started it
	ended := cmd.Run()
	runtime.UnlockOSThread()
	if err := ctx.Err(); err != nil {
		return holdfast.PolicyReport{}, context.Cause(ctx)
	}
	last, answered := readLines(out.kept.Bytes())
	switch {
	case answered.Error != "":
		return holdfast.PolicyReport{}, errors.New(answered.Error)
	case answered.Report != nil && ended == nil && !out.over:
		return *answered.Report, nil
	}
	var exit *exec.ExitError
	if ended != nil && !errors.As(ended, &exit) && limited.Err() == nil {
		return holdfast.PolicyReport{}, fmt.Errorf("evaluate policies: %w", ended)
	}
	return e.broken(policies, last, e.causeOf(out, said, limited.Err() != nil, ended)), nil
}

// noMemory is how the runtime of Go says that it was refused memory, be it for a thread.
var noMemory = []string{"out of memory", "cannot allocate memory", "failed to create new OS thread", "newosproc", "pthread_create failed"}

// unchecked is what it says when its collector was refused memory for its own queues: it uses
// them unchecked. A pointer that is nil in any other code is a panic, which says so first.
const unchecked = "SIGSEGV: segmentation violation"

// causeOf says why the process has not answered.
func (e *Evaluator) causeOf(out, said *bounded, late bool, ended error) string {
	text := said.kept.String()
	switch {
	case out.over:
		return fmt.Sprintf("it answered more than %d MiB", e.opts.Output>>20)
	case strings.HasPrefix(text, unchecked), slices.ContainsFunc(noMemory, func(word string) bool { return strings.Contains(text, word) }):
		return fmt.Sprintf("it needed more than %d MiB of memory", e.opts.Memory>>20)
	case late:
		return fmt.Sprintf("it had not ended after %s", e.opts.Timeout)
	default:
		first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		return fmt.Sprintf("its process broke off: %v: %.200s", ended, first)
	}
}

// broken is the report of an evaluation that a policy has broken off. Which policies there are
// would be known by compiling them, and perhaps that broke it off.
func (e *Evaluator) broken(policies protocol.AssignedPolicies, last, cause string) holdfast.PolicyReport {
	fault := holdfast.PolicyFault{Policy: last, Fault: holdfast.Fault{
		Message: cause, Hint: "policies after it were not evaluated",
	}}
	if last == "" {
		fault.Message = "policies and plan could not be read: " + cause
		fault.Hint = ""
	}
	report := holdfast.PolicyReport{Set: policy.Digest(policies.Sources, policies.Settings), Faults: []holdfast.PolicyFault{fault}}
	report.Verdict = holdfast.VerdictOf(report)
	return report
}

// readLines returns the policy that began last, and the answer.
func readLines(out []byte) (last string, answer line) {
	for text := range bytes.Lines(out) {
		var l line
		if json.Unmarshal(text, &l) != nil {
			continue // cut off
		}
		if l.Begins != "" {
			last = l.Begins
		}
		if l.Report != nil || l.Error != "" {
			answer = l
		}
	}
	return last, answer
}

// bounded keeps the first bytes of what is written. When there are more it calls full, once.
type bounded struct {
	kept  bytes.Buffer
	limit int64
	over  bool
	full  func()
}

func (b *bounded) Write(p []byte) (int, error) {
	room := max(b.limit-int64(b.kept.Len()), 0)
	b.kept.Write(p[:min(int64(len(p)), room)])
	if int64(len(p)) > room && !b.over {
		if b.over = true; b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}
