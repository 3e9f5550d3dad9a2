package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// part is what is measured together, on its own stage.
type part struct {
	name    string
	limit   time.Duration // beyond it the part is cut
	measure func(*stage)
}

const (
	// wholeLimit bounds all parts together, whose limits add up to it. It leaves a minute of
	// the quarter of an hour that `make bench` may take, for what is built before and written
	// after.
	wholeLimit = 14 * time.Minute
	// hugeLimit is of each part with a fleet of 100,000 clusters.
	hugeLimit = 2 * time.Hour
)

// parts are all parts, in the order of the tables.
func (b *bench) parts() []part {
	return []part{
		{"pulls", 65 * time.Second, func(s *stage) { b.pullRequests(s, plainModule) }},
		{"providers", 100 * time.Second, func(s *stage) { b.pullRequests(s, providerModule) }},
		{"cpu", 100 * time.Second, b.processor},
		{"burst", 20 * time.Second, b.burst},
		{"neighbours", 30 * time.Second, b.neighbours},
		{"hanging", 20 * time.Second, b.hanging},
		{"open", 95 * time.Second, b.open},
		{"counts", 10 * time.Second, b.counts},
		{"starts", 5 * time.Second, b.starts},
		{"hooks", 45 * time.Second, b.deliveries},
		{"fleets", 90 * time.Second, b.fleets},
		{"templates", 90 * time.Second, b.blueprints},
		{"days", 50 * time.Second, b.days},
		{"strangers", 20 * time.Second, b.strangers},
		{"replicas", 65 * time.Second, b.replicas},
		{"jobs", 35 * time.Second, b.jobs},
	}
}

// outcome is what became of a part.
type outcome struct {
	part    string
	figures []figure
	others  float64 // share of the processors that others used meanwhile
	cut     string  // where its limit ended it; empty: it was measured as a whole
	err     error   // why it has failed
}

// written reports whether the figures replace former ones.
func (o outcome) written() bool { return o.err == nil && o.others <= quiet }

// mark is what figures have behind them that are not written.
func (o outcome) mark() string {
	switch {
	case o.err != nil:
		return "failed"
	case !o.written():
		return "disturbed"
	default:
		return ""
	}
}

// measure measures parts one after another. The error joins those of the parts that failed;
// an interrupt ends the rest.
func (b *bench) measure(ctx context.Context, parts []part) ([]outcome, error) {
	b.began = time.Now()
	fmt.Fprintf(b.log, "%d CPUs, %d runs at once, median of %d\n", runtime.NumCPU(), b.parallel, b.repeat)
	var outcomes []outcome
	var failed []error
	for _, p := range parts {
		began := time.Now()
		o := b.measurePart(ctx, p)
		if ctx.Err() != nil {
			return outcomes, errors.Join(append(failed, context.Cause(ctx))...)
		}
		b.say(o, time.Since(began))
		if o.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.name, o.err))
		}
		outcomes = append(outcomes, o)
	}
	fmt.Fprintf(b.log, "measured in %s\n", time.Since(b.began).Round(time.Second))
	return outcomes, errors.Join(failed...)
}

// allowed is how long a part may take from now on.
func (b *bench) allowed(p part) time.Duration {
	switch {
	case b.limit > 0:
		return b.limit
	case b.huge:
		return hugeLimit
	default:
		return min(p.limit, wholeLimit-time.Since(b.began))
	}
}

func (b *bench) measurePart(ctx context.Context, p part) outcome {
	o := outcome{part: p.name}
	limit := b.allowed(p)
	if limit <= 0 {
		o.cut = fmt.Sprintf("the parts before it took %s", wholeLimit)
		return o
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	before, err := b.loads()
	if err != nil {
		o.err = err
		return o
	}
	s, err := onStage(ctx, b, p.measure)
	o.figures = s.figures
	switch {
	case err != nil && ctx.Err() != nil: // whatever it was that it ended
		o.cut = fmt.Sprintf("its limit is %s: %v", limit.Round(time.Second), err)
	case err != nil:
		o.err = err
		return o
	}
	after, err := b.loads()
	if err != nil {
		o.err = err
		return o
	}
	o.others = after.since(before).others()
	day := time.Now().Format(time.DateOnly)
	for i := range o.figures {
		o.figures[i].Part, o.figures[i].Measured = p.name, day
	}
	return o
}

// say prints what became of a part.
func (b *bench) say(o outcome, took time.Duration) {
	took = took.Round(time.Second)
	switch {
	case o.err != nil:
		fmt.Fprintf(b.log, "%s: FAILED after %s: %v\n", o.part, took, o.err)
		return
	case o.cut != "":
		fmt.Fprintf(b.log, "%s: CUT after %s: %s; what was measured before counts\n", o.part, took, o.cut)
	default:
		fmt.Fprintf(b.log, "%s: measured in %s\n", o.part, took)
	}
	if !o.written() {
		fmt.Fprintf(b.log, "%s: DISTURBED: others used %.1f %% of the processors, and at most %.0f %% are quiet; its figures are not written\n",
			o.part, o.others*100, quiet*100)
	}
}
