package launch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// What a runner has started where its document said before: a runner may be edited while
// its runs are executed, which do not notice that. Nothing is started there any longer.

// left is something that was started at a former place.
type left struct {
	protocol.Launched
	at Jobs
}

// lookBack returns what there is at former places; unsure if one of them cannot be asked now.
func (l *Launcher) lookBack(ctx context.Context) (all []left, unsure bool) {
	for _, at := range l.opts.Former {
		list, err := at.Launched(ctx)
		unsure = unsure || err != nil
		for _, one := range list {
			all = append(all, left{one, at})
		}
	}
	return all, unsure
}

// perhapsThere reports whether an attempt that no place knows may have been started at a former
// place that cannot be asked: not if it was claimed since then. It is not started a second time
// then: the end of that one, which gets nothing for its ticket, would be taken for the
// attempt's.
func (l *Launcher) perhapsThere(a protocol.Ticket) bool {
	return l.unsure && !a.CreatedAt.IsZero() && !l.knownOf(a.AttemptRef).tried && time.Since(a.CreatedAt) >= time.Since(l.began)
}

// standing is what there is for an attempt.
type standing struct {
	protocol.Launched
	some   bool // there is something
	former bool // at a former place
}

// standingOf is what executes an attempt, or is to: if there is something in several places,
// what has called for it, then what is not over.
func (l *Launcher) standingOf(a protocol.Ticket, here map[holdfast.AttemptRef]protocol.Launched) standing {
	one, some := here[key(a.AttemptRef)]
	found := standing{Launched: one, some: some}
	for _, past := range l.past {
		if past.Ref() != key(a.AttemptRef) {
			continue
		}
		called := a.Host != "" && past.Host == a.Host && found.Host != a.Host
		if called || !found.some || found.Over && !past.Over && (a.Host == "" || found.Host != a.Host) {
			found = standing{Launched: past.Launched, some: true, former: true}
		}
	}
	return found
}

// stop stops what was started for an attempt, wherever that is.
func (l *Launcher) stop(ctx context.Context, ref holdfast.AttemptRef) error {
	errs := []error{l.opts.Jobs.Stop(ctx, ref)}
	for _, past := range l.past {
		if past.Ref() == key(ref) && !past.Over {
			errs = append(errs, past.at.Stop(ctx, ref))
		}
	}
	return errors.Join(errs...)
}

// formerPlace is a former place of a runner: nothing is known of one that can no longer be
// used.
type formerPlace struct {
	mu   sync.Mutex
	jobs Jobs // nil: not opened yet, or not to be
	err  error
}

// errNotOpened is a *protocol.LaunchError without a reason: nobody was asked yet.
var errNotOpened = &protocol.LaunchError{Err: errors.New("it was not asked yet")}

// run opens the place, again and again if need be, and watches it until ctx is done.
func (f *formerPlace) run(ctx context.Context, opts PoolOptions, r runnerspec.Runner) {
	for told := false; ctx.Err() == nil; {
		jobs, watch, err := opts.Open(ctx, r)
		f.mu.Lock()
		f.jobs, f.err = jobs, err
		f.mu.Unlock()
		switch {
		case err != nil && !told:
			told = true
			opts.Logger.WarnContext(ctx, "what a runner may have left where its document said before is not looked after", "runner", r.Name, "err", err)
		case err == nil && watch == nil:
			return
		case err == nil:
			_ = watch(ctx) // it says itself what it cannot do
		}
		select {
		case <-ctx.Done():
		case <-time.After(openAgain):
		}
	}
}

func (f *formerPlace) opened() (Jobs, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jobs == nil && f.err == nil {
		return nil, errNotOpened
	}
	return f.jobs, f.err
}

// Launched returns what is there.
func (f *formerPlace) Launched(ctx context.Context) ([]protocol.Launched, error) {
	jobs, err := f.opened()
	if err != nil {
		return nil, err
	}
	return jobs.Launched(ctx)
}

// Stop asks what was started for an attempt to end.
func (f *formerPlace) Stop(ctx context.Context, ref holdfast.AttemptRef) error {
	jobs, err := f.opened()
	if err != nil {
		return err
	}
	return jobs.Stop(ctx, ref)
}

// Start starts nothing.
func (f *formerPlace) Start(context.Context, protocol.Launch) error {
	return errors.New("nothing is started at a former place")
}

// Changed never says anything: the next look finds it.
func (f *formerPlace) Changed() <-chan struct{} { return nil }
