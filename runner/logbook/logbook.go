package logbook

import (
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// Book is what an attempt says: its log, without secrets, and its steps.
type Book struct {
	Redact *redact.Redactor  // takes secrets out of the log, and of all else
	Log    *journal.Holdback // what engines write to; writes to redacted

	session Session
	keeper  ProgressKeeper // nil: the progress of an apply is not kept
	altered bool           // an address of what it keeps may have lost a secret
	now     func() time.Time

	copied   *logCopy
	limiter  *journal.LogLimiter // writes to copied
	redacted io.WriteCloser      // writes to limiter

	step    string
	stepped time.Time       // when step was begun
	steps   []protocol.Step // that have ended
}

// Options are what a Book needs besides its session. All are required.
type Options struct {
	Secrets []string // that are known from the beginning
	WorkDir string   // for temporary files
	Limit   int64    // bytes of a log
	Now     func() time.Time
}

// New returns the logbook of a session.
func New(s Session, opts Options) *Book {
	b := &Book{session: s, now: opts.Now, Redact: redact.New(opts.Secrets)}
	b.keeper, _ = s.(ProgressKeeper)
	b.copied = newLogCopy(s, opts.WorkDir, b.Redact.Count())
	b.limiter = journal.NewLogLimiter(b.copied, opts.Limit)
	b.redacted = b.Redact.Writer(b.limiter)
	b.Log = journal.NewHoldback(b.redacted)
	return b
}

// Close writes what is held of the log; show says whether what is held back may be
// shown. It returns in how many places the log had what is known to be secret only now.
func (b *Book) Close(show bool) (masked int, err error) {
	b.Log.Release(show)
	_ = b.redacted.Close()
	b.limiter.Close()
	return b.copied.mask(b.Redact)
}

// NoteProgress keeps a line of what an apply says it begins and has completed.
func (b *Book) NoteProgress(line string) {
	if b.keeper == nil {
		return
	}
	text := b.Redact.String(line)
	b.altered = b.altered || text != line
	b.keeper.NoteProgress(text)
}

// EndProgress says that the engine has ended, and that all it did is known by its
// addresses.
func (b *Book) EndProgress() {
	if b.keeper != nil && !b.altered {
		b.keeper.EndProgress()
	}
}

// Begin ends the current step and begins the next.
func (b *Book) Begin(step string) {
	now := b.now()
	b.endStep(now)
	b.step, b.stepped = step, now
	b.session.Step(step)
}

func (b *Book) endStep(now time.Time) {
	if b.step != "" {
		b.steps = append(b.steps, protocol.Step{Name: b.step, Duration: now.Sub(b.stepped)})
	}
}

// Lasted is how long the attempt has been executed.
func (b *Book) Lasted() time.Duration {
	sum := b.now().Sub(b.stepped)
	for _, step := range b.steps {
		sum += step.Duration
	}
	return sum
}

// Say writes a line of ours into the attempt's log.
func (b *Book) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.Log, "holdfast: "+format+"\n", args...)
}

// Step is what the attempt does now; empty once it has ended.
func (b *Book) Step() string { return b.step }

// Steps are those that have ended.
func (b *Book) Steps() []protocol.Step { return b.steps }

// End ends the last step, and returns all of them.
func (b *Book) End() []protocol.Step {
	b.endStep(b.now())
	b.step = ""
	return b.steps
}
