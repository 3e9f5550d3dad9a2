package queue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Line is a line of goroutines that wait for the same things. Whatever wakes it, one of them
// looks on behalf of all, one look after the other, and each thing that is found goes to one of
// them, in the order in which they came: the number of looks does not depend on how many wait.
type Line[V any] struct {
	opts LineOptions[V]

	mu      sync.Mutex // guards all below, and the fields of places
	waiting []*Place[V]
	came    uint64 // how many places there were
	due     bool   // since the last look began there may be something
	looking bool
	looks   uint64 // that have begun
	found   Found[V]
	later   *time.Timer
}

// LineOptions are what a Line needs. All are required unless noted.
type LineOptions[V any] struct {
	// Look looks for things for as many goroutines as wait. The context is that of one
	// of them.
	Look func(ctx context.Context, wanted int) (Found[V], error)
	// Given is called with each thing before somebody gets it, Back with each thing that is
	// not used. They must not call the line. Nil: nobody is.
	Given, Back func(V)
	// Pause is the time until the next look after one that was Unsure.
	Pause time.Duration
}

// Found is what a look has found, in the order in which it is to be handed out.
type Found[V any] struct {
	Values []V  // one for each of those who wait, or fewer
	Spare  []V  // for those for whom theirs was of no use
	More   bool // there was more than that
	Short  bool // another look may at once find something for those who got nothing
	Unsure bool // there may be something later without a notification
}

// NewLine returns an empty line.
func NewLine[V any](opts LineOptions[V]) *Line[V] {
	if opts.Given == nil {
		opts.Given = func(V) {}
	}
	if opts.Back == nil {
		opts.Back = func(V) {}
	}
	return &Line[V]{opts: opts}
}

// Wake says that there may be something.
func (l *Line[V]) Wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = true
	l.nudge()
}

// Place is somebody's place in a line. One goroutine uses it.
type Place[V any] struct {
	line   *Line[V]
	number uint64
	signal chan struct{} // has room for one: something has changed for it

	round   uint64 // the last look that was made on behalf of it
	joined  uint64 // the last look that was not
	patient bool   // it waits until something is found
	given   []V    // what was found for it; none or one
	err     error  // of the look that was made on behalf of it
}

// Place returns a place behind all others.
func (l *Line[V]) Place() *Place[V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.came++
	return &Place[V]{line: l, number: l.came, signal: make(chan struct{}, 1)}
}

// Miss is why what a place was given was of no use.
type Miss int

// The kinds of misses.
const (
	MissNone  Miss = iota // it was given nothing yet
	MissHeld              // nobody gets it for now
	MissTaken             // somebody else has it
	MissNever             // this place does not get it, and no later look finds it for it
)

// Next waits for the next thing to try; last says what became of the one before. It is false
// if patience is over, and a look that began after the call has found nothing. The error is
// that of ctx, or of the look.
func (p *Place[V]) Next(ctx context.Context, patience time.Duration, last Miss) (thing V, ok bool, err error) {
	if thing, ok = p.enter(last); ok {
		return thing, true, nil
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	for patient := true; ; {
		if p.looks() {
			if err := p.line.look(ctx); err != nil && ctx.Err() != nil {
				return thing, false, p.leave(ctx)
			}
		}
		if given, done, err := p.settled(patient); done || err != nil {
			if len(given) > 0 {
				return given[0], true, nil
			}
			return thing, false, err
		}
		select {
		case <-p.signal:
		case <-over.C:
			patient = false
		case <-ctx.Done():
			return thing, false, p.leave(ctx)
		}
	}
}

// enter makes a place wait, unless the look that found something for it has found more.
func (p *Place[V]) enter(last Miss) (thing V, ok bool) {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	ours := last != MissNone && p.round == l.looks && !l.looking // nobody has looked since
	if ours && len(l.found.Spare) > 0 {
		thing, l.found.Spare = l.found.Spare[0], l.found.Spare[1:]
		l.opts.Given(thing)
		return thing, true
	}
	p.joined = l.looks
	switch {
	case !ours, last == MissNever, last == MissTaken && l.found.More:
		l.due = true
	default: // that look was made for it
		p.joined--
		if l.found.Unsure {
			l.wakeLater()
		}
	}
	i, _ := slices.BinarySearchFunc(l.waiting, p.number, func(other *Place[V], number uint64) int {
		return cmp.Compare(other.number, number)
	})
	l.waiting = slices.Insert(l.waiting, i, p)
	return thing, false
}

// looks reports whether a place has to look on behalf of all.
func (p *Place[V]) looks() bool {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.due || l.looking || !slices.Contains(l.waiting, p) {
		return false
	}
	l.due, l.looking = false, true
	l.looks++
	return true
}

// look looks, and hands out what is found.
func (l *Line[V]) look(ctx context.Context) error {
	found, err := l.find(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.nudge()
	switch {
	case err != nil && ctx.Err() != nil: // whoever looked has hung up: another one looks
		l.due = true
		return err
	case err != nil:
		l.found = Found[V]{}
		for _, p := range l.waiting {
			p.err = err
			p.wake()
		}
		l.waiting = nil
		return err
	}
	given := min(len(l.waiting), len(found.Values))
	for i, p := range l.waiting {
		if p.round = l.looks; i < given {
			p.given = found.Values[i : i+1]
			l.opts.Given(found.Values[i])
		}
		if i < given || !p.patient {
			p.wake()
		}
	}
	l.waiting = slices.Clone(l.waiting[given:])
	l.due = l.due || found.Short
	l.found = found
	l.found.Spare = slices.Concat(found.Values[given:], found.Spare)
	if found.Unsure && len(l.waiting) > 0 {
		l.wakeLater()
	}
	return nil
}

// find calls Look; nobody else does meanwhile.
func (l *Line[V]) find(ctx context.Context) (Found[V], error) {
	l.mu.Lock()
	wanted := len(l.waiting)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.looking = false
	}()
	return l.opts.Look(ctx, wanted)
}

func (l *Line[V]) wakeLater() {
	if l.later == nil {
		l.later = time.AfterFunc(l.opts.Pause, l.Wake)
	} else {
		l.later.Reset(l.opts.Pause)
	}
}

// settled returns what a place was given; done if it waits for nothing else.
func (p *Place[V]) settled(patient bool) (given []V, done bool, err error) {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	given, err = p.given, p.err
	p.given, p.err, p.patient = nil, nil, patient
	switch {
	case len(given) > 0 || err != nil:
		return given, true, err
	case !patient && p.round > p.joined:
		l.remove(p)
		l.nudge()
		return nil, true, nil
	}
	return nil, false, nil
}

// leave takes a place out of the line whose owner has hung up. What it was given goes to
// somebody else.
func (p *Place[V]) leave(ctx context.Context) error {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(p.given) > 0 {
		l.opts.Back(p.given[0])
		p.given, l.due = nil, true
	}
	l.remove(p)
	l.nudge()
	return ctx.Err()
}

func (l *Line[V]) remove(p *Place[V]) {
	if i := slices.Index(l.waiting, p); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
}

// nudge makes the first one that waits look, if that is due.
func (l *Line[V]) nudge() {
	if l.due && !l.looking && len(l.waiting) > 0 {
		l.waiting[0].wake()
	}
}

func (p *Place[V]) wake() {
	select {
	case p.signal <- struct{}{}:
	default: // it is about to see
	}
}
