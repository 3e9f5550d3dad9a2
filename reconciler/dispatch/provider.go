package dispatch

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// ObserveProvider applies the end of an attempt to the breaker of its cloud, and
// notifies everybody concerned.
func (d *Dispatcher) ObserveProvider(ctx context.Context, run holdfast.Run) {
	provider := run.Document.Provider
	until, moved, err := d.breakers.Ended(ctx, run)
	if err != nil {
		d.opts.Logger.WarnContext(ctx, "end of an attempt was not counted for its provider", "provider", provider, "run", run.ID, "err", err)
	}
	if !moved {
		return
	}
	d.opts.Metrics.ProviderHeld(provider, until)
	if until.IsZero() {
		d.opts.Logger.InfoContext(ctx, "provider recovered", "provider", provider, "run", run.ID)
	} else {
		d.opts.Logger.WarnContext(ctx, "pausing runs of provider", "provider", provider, "until", until.UTC(),
			"run", run.ID, "reason", run.Failure.Cause)
	}
	d.opts.Fleet.Wake(ctx, topicProvider+providerWord(provider, until))
	d.opts.Fleet.Held(ctx, provider)
}

// seeBreakers looks at which providers need a break, by what all replicas have on record.
func (d *Dispatcher) seeBreakers(ctx context.Context) error {
	moved, err := d.breakers.Look(ctx)
	for provider, until := range moved {
		d.opts.Metrics.ProviderHeld(provider, until)
	}
	return err
}

// providerWord is what toldOf understands.
func providerWord(provider string, until time.Time) string {
	if until.IsZero() {
		return provider + ":0"
	}
	return provider + ":" + strconv.FormatInt(until.UnixNano(), 10)
}

const (
	// TopicWork says that a run may be claimable.
	TopicWork     = "work"
	topicProvider = "provider:" // and a word of toldOf
)

// Woken handles a topic of Wake, this replica's or another one's. It ignores those that
// are not the Dispatcher's.
func (d *Dispatcher) Woken(topic string) {
	if topic == TopicWork {
		d.claimable()
	} else if word, ok := strings.CutPrefix(topic, topicProvider); ok {
		d.observeOther(word)
	}
}

// observeOther is ObserveProvider by another replica's message: "NAME:NANOSECONDS", zero
// for a provider that is well.
func (d *Dispatcher) observeOther(word string) {
	i := strings.LastIndexByte(word, ':')
	if i <= 0 {
		return
	}
	nanos, err := strconv.ParseInt(word[i+1:], 10, 64)
	if err != nil {
		return
	}
	until := time.Time{}
	if nanos > 0 {
		until = time.Unix(0, nanos)
	}
	if d.breakers.Adopt(word[:i], until) {
		d.opts.Metrics.ProviderHeld(word[:i], until)
	}
	if until.IsZero() {
		d.claimable()
	}
}

// claimable says that a run may be claimable.
func (d *Dispatcher) claimable() {
	d.work.Send()
	d.counters.wake()
}

// HeldUntil is when the next run of a provider may be handed out; the zero time means
// now.
func (d *Dispatcher) HeldUntil(provider string) time.Time { return d.breakers.Until(provider) }

// Held are the providers of which no run is handed out now, sorted.
func (d *Dispatcher) Held() []string { return d.breakers.Held() }

// CapWait is why no run of a cluster is handed out: its provider is held back, or that
// or its project has as many runs as it may. Empty if none of this is so.
func (d *Dispatcher) CapWait(ctx context.Context, c holdfast.Cluster) (reason holdfast.Reason, detail string, err error) {
	if until := d.HeldUntil(c.Provider); c.Provider != "" && !until.IsZero() {
		return holdfast.ReasonProviderThrottled, decision.ThrottledText(c.Provider, until), nil
	}
	if _, capped := d.opts.Limits.Provider[c.Provider]; !capped && d.opts.Limits.Project <= 0 {
		return "", "", nil
	}
	running, _, err := d.opts.Store.Served(ctx, d.opts.Now())
	if err != nil {
		return "", "", fmt.Errorf("list running runs: %w", err)
	}
	reason, detail = d.capOf(loadOf(running), c)
	return reason, detail, nil
}

// capOf is the limit that a run of a cluster waits for; empty if it waits for none.
func (d *Dispatcher) capOf(load load, c holdfast.Cluster) (reason holdfast.Reason, detail string) {
	switch {
	case d.opts.Limits.providerFull(load, c.Provider):
		return holdfast.ReasonProviderCapped,
			fmt.Sprintf("%d of %d runs of %s are running", load.providers[c.Provider], d.opts.Limits.Provider[c.Provider], c.Provider)
	case d.opts.Limits.projectFull(load, c.Project):
		return holdfast.ReasonProjectCapped,
			fmt.Sprintf("%d of %d runs of project %s are running", load.projects[c.Project], d.opts.Limits.Project, c.Project)
	default:
		return "", ""
	}
}

// load is how many runs are running.
type load struct {
	providers, projects, runners map[string]int
	drift                        int
}

func loadOf(running []holdfast.Lane) load {
	l := load{providers: make(map[string]int), projects: make(map[string]int), runners: make(map[string]int)}
	for _, lane := range running {
		l.add(lane)
	}
	return l
}

func (l *load) add(lane holdfast.Lane) {
	l.providers[lane.Provider]++
	l.projects[lane.Project]++
	l.runners[lane.Runner]++
	if lane.Kind == holdfast.RunDrift {
		l.drift++
	}
}

func (l Limits) providerFull(of load, provider string) bool {
	most, capped := l.Provider[provider]
	return capped && provider != "" && of.providers[provider] >= most
}

func (l Limits) projectFull(of load, project string) bool {
	return l.Project > 0 && of.projects[project] >= l.Project
}
