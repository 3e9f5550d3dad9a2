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

// ObserveProvider lets the end of an attempt bear on the breaker of its cloud, and tells
// everybody whom that concerns.
func (d *Dispatcher) ObserveProvider(ctx context.Context, run holdfast.Run) {
	until, changed := d.breakers.ended(run)
	if !changed {
		return
	}
	provider := run.Document.Provider
	d.opts.Metrics.ProviderHeld(provider, until)
	if until.IsZero() {
		d.opts.Logger.InfoContext(ctx, "provider is well again", "provider", provider, "run", run.ID)
	} else {
		d.opts.Logger.WarnContext(ctx, "provider is given a break", "provider", provider, "until", until.UTC(),
			"run", run.ID, "reason", run.Failure.Cause)
	}
	d.opts.Fleet.Wake(ctx, topicProvider+providerWord(provider, until))
	d.opts.Fleet.Held(ctx, provider)
}

// providerWord is what toldOf understands.
func providerWord(provider string, until time.Time) string {
	if until.IsZero() {
		return provider + ":0"
	}
	return provider + ":" + strconv.FormatInt(until.UnixNano(), 10)
}

const (
	topicWork     = "work"
	topicProvider = "provider:" // and a word of toldOf
)

// Woken takes in a topic of Wake, this replica's or another one's. It ignores
// those that are not the Dispatcher's.
func (d *Dispatcher) Woken(topic string) {
	if topic == topicWork {
		d.work.Send()
	} else if word, ok := strings.CutPrefix(topic, topicProvider); ok {
		d.observeOther(word)
	}
}

// observeOther is ObserveProvider by another replica's word: "NAME:NANOSECONDS", zero for a
// provider that is well.
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
	if d.breakers.adopt(word[:i], until) {
		d.opts.Metrics.ProviderHeld(word[:i], until)
	}
	if until.IsZero() {
		d.work.Send()
	}
}

// HeldUntil is when the next run of a provider may be handed out; the zero time
// if now.
func (d *Dispatcher) HeldUntil(provider string) time.Time { return d.breakers.until(provider) }

// Held are the providers of which no run is handed out now, sorted.
func (d *Dispatcher) Held() []string { return d.breakers.held() }

// ProviderWait is why a queued run of a provider is not handed out; empty if it
// is not the provider that it waits for.
func (d *Dispatcher) ProviderWait(ctx context.Context, provider string) (reason holdfast.Reason, detail string, err error) {
	if provider == "" {
		return "", "", nil
	}
	if until := d.breakers.until(provider); !until.IsZero() {
		return holdfast.ReasonProviderThrottled, decision.ThrottledText(provider, until), nil
	}
	most, capped := d.opts.Limits.Provider[provider]
	if !capped {
		return "", "", nil
	}
	running, _, err := d.opts.Store.RunningBy(ctx)
	if err != nil {
		return "", "", fmt.Errorf("count running runs: %w", err)
	}
	if running[provider] < most {
		return "", "", nil
	}
	return holdfast.ReasonProviderCapped, fmt.Sprintf("%d of %d runs of %s are running", running[provider], most, provider), nil
}
