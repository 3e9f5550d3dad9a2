// What an attempt says: its log and its steps.

package attempt

import (
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// logbook is the output of an attempt: its log, without secrets, and its steps.
type logbook struct {
	session Reports
	keeper  ProgressKeeper // nil: the progress of an apply is not kept
	altered bool           // an address of what it keeps may have lost a secret
	now     func() time.Time

	redact   *redact.Redactor
	copied   *logCopy
	limiter  *journal.LogLimiter // writes to copied
	redacted io.WriteCloser      // writes to limiter
	log      *journal.Holdback   // what engines write to; writes to redacted

	step    string
	stepped time.Time       // when step was begun
	steps   []protocol.Step // that have ended
}

// newLogbook returns the logbook of a session, which knows these secrets.
func newLogbook(s Reports, secrets []string, opts Options) *logbook {
	b := &logbook{session: s, now: opts.Now, redact: redact.New(secrets)}
	b.keeper, _ = s.(ProgressKeeper)
	b.copied = newLogCopy(s, opts.WorkDir, b.redact.Count())
	b.limiter = journal.NewLogLimiter(b.copied, opts.Limits.Log)
	b.redacted = b.redact.Writer(b.limiter)
	b.log = journal.NewHoldback(b.redacted)
	return b
}

// close writes what is held of the log; show says whether what is held back may be
// shown. It returns in how many places the log had what is known to be secret only now.
func (t *logbook) close(show bool) (masked int, err error) {
	t.log.Release(show)
	_ = t.redacted.Close()
	t.limiter.Close()
	return t.copied.mask(t.redact)
}

// noteProgress keeps a line of what an apply says it begins and has completed.
func (t *logbook) noteProgress(line string) {
	if t.keeper == nil {
		return
	}
	text := t.redact.String(line)
	t.altered = t.altered || text != line
	t.keeper.NoteProgress(text)
}

// endProgress says that the engine has ended, and that all it did is known by its
// addresses.
func (t *logbook) endProgress() {
	if t.keeper != nil && !t.altered {
		t.keeper.EndProgress()
	}
}

// begin ends the current step and begins the next.
func (t *logbook) begin(step string) {
	now := t.now()
	t.endStep(now)
	t.step, t.stepped = step, now
	t.session.Step(step)
}

func (t *logbook) endStep(now time.Time) {
	if t.step != "" {
		t.steps = append(t.steps, protocol.Step{Name: t.step, Duration: now.Sub(t.stepped)})
	}
}

// lasted is how long the attempt has been executed.
func (t *logbook) lasted() time.Duration {
	sum := t.now().Sub(t.stepped)
	for _, step := range t.steps {
		sum += step.Duration
	}
	return sum
}

// say writes a line of ours into the attempt's log.
func (t *logbook) say(format string, args ...any) {
	_, _ = fmt.Fprintf(t.log, "holdfast: "+format+"\n", args...)
}
