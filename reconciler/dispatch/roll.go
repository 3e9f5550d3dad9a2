package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
)

// What replicas tell one another of agents: each agent speaks to any of them.

const (
	// sharedFor is the longest time for which other replicas are not notified of a sign
	// of life.
	sharedFor = 8 * time.Second
	// rollTries bounds how often two replicas get into each other's way.
	rollTries = 5
)

// roll is how a Dispatcher shares what it hears of agents.
type roll struct{ *Dispatcher }

// hear is agents.heard with what all replicas know.
func (d roll) hear(ctx context.Context, req protocol.ClaimRequest) error {
	for range rollTries {
		if d.isShared(req) {
			return d.agents.heard(req)
		}
		signs, err := d.opts.Fleet.HeardAgents(ctx, req.Agent)
		if err != nil {
			return fmt.Errorf("look for agent %q: %w", req.Agent, err)
		}
		d.merge(signs)
		was, err := d.wouldHear(req)
		if err != nil {
			return err
		}
		ours, err := d.opts.Fleet.HearAgent(ctx, req, was, agentSilence)
		if err != nil {
			return fmt.Errorf("record agent %q: %w", req.Agent, err)
		}
		if ours {
			err := d.agents.heard(req)
			d.markShared(req)
			return err
		}
	}
	return fmt.Errorf("record agent %q: %w", req.Agent, errors.Join(errBusyID, holdfast.ErrUnavailable))
}

var errBusyID = errors.New("several processes claim its id at once")

// isShared reports whether the process of a claim has its id, and other replicas know it.
func (a *agents) isShared(req protocol.ClaimRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.by[req.Agent]
	return m != nil && m.claim.Process == req.Process && m.claim.Folder == req.Folder && !m.shared.IsZero() && time.Since(m.shared) < sharedFor
}

func (a *agents) markShared(req protocol.ClaimRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.by[req.Agent]; m != nil && m.claim.Process == req.Process {
		m.shared = time.Now()
	}
}

// wouldHear returns the process whose place that of a claim takes, empty if there is none, or
// why it is refused.
func (a *agents) wouldHear(req protocol.ClaimRequest) (was string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.placeOf(req); err != nil {
		return "", err
	}
	if m := a.by[req.Agent]; m != nil {
		was = m.claim.Process
	}
	return was, nil
}

// merge adds what other replicas have heard. The later sign of life counts.
func (a *agents) merge(signs []replica.AgentSign) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range signs {
		m := a.by[s.Claim.Agent]
		seen := time.Now().Add(-s.Ago)
		switch {
		case m == nil:
			m = &member{}
		case m.claim.Process == s.Claim.Process:
			if m.beaten || seen.After(m.seen) {
				m.claim, m.beaten, m.refused = s.Claim, false, a.refusal(s.Claim)
			}
			if seen.After(m.seen) {
				m.seen, m.seenAt = seen, a.now().Add(-s.Ago)
			}
			continue
		case m.waiting > 0 || !seen.After(m.seen):
			continue
		case s.Claim.Folder != "" && s.Claim.Folder == m.claim.Folder:
			m = &member{former: m.replacedBy(s.Claim.Process)}
		default:
			m = &member{}
		}
		m.claim, m.refused = s.Claim, a.refusal(s.Claim)
		m.since, m.seen, m.seenAt = a.now().Add(-s.Since), seen, a.now().Add(-s.Ago)
		a.by[s.Claim.Agent] = m
	}
}

// refresh adds all agents that other replicas have heard of.
func (d roll) refresh(ctx context.Context) error {
	signs, err := d.opts.Fleet.HeardAgents(ctx, "")
	if err != nil {
		return fmt.Errorf("list agents: %w", err)
	}
	d.merge(signs)
	return nil
}
