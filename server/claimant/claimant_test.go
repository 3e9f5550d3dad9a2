package claimant_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/agentkey"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server/claimant"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// runners are one runner, or the trouble in reading it.
type runners struct {
	runner runnerspec.Runner
	err    error
}

func (r *runners) Runner(_ context.Context, name string) (runnerspec.Record, error) {
	if r.err == nil && r.runner.Name != name {
		return runnerspec.Record{}, holdfast.ErrNotFound
	}
	return runnerspec.Record{Document: r.runner}, r.err
}

func signed(t *testing.T) (token, public string) {
	t.Helper()
	key, err := agentkey.Generate()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := agentkey.New(key, "far/1", "https://agents.example.com", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	if token, err = signer.Token(); err != nil {
		t.Fatal(err)
	}
	if public, err = key.PublicPEM(); err != nil {
		t.Fatal(err)
	}
	return token, public
}

// A key is good as long as the document in force has it. Trouble in reading that refuses nobody.
func TestKeyInForce(t *testing.T) {
	t.Parallel()
	token, public := signed(t)
	docs := &runners{runner: runnerspec.Runner{Name: "far", Type: runnerspec.Remote, Keys: []string{public}}}
	c := claimant.New(claimant.Options{Runners: docs, Address: "https://agents.example.com", Now: func() time.Time { return now }})
	who, err := c.Of(t.Context(), token)
	if err != nil || who.Agent != "far/1" || who.Runner != "far" || who.Document.Name != "far" || len(who.Projects) > 0 {
		t.Fatalf("got %+v, %v", who, err)
	}
	if good, err := c.InForce(t.Context(), who); err != nil || !good {
		t.Errorf("in force: %t, %v", good, err)
	}
	docs.runner.Keys = nil
	if good, err := c.InForce(t.Context(), who); err != nil || good {
		t.Errorf("in force after its removal: %t, %v", good, err)
	}
	docs.err = errors.New("disk")
	if _, err := c.InForce(t.Context(), who); !errors.Is(err, docs.err) {
		t.Errorf("with trouble: %v", err)
	}
	var refused *claimant.Refusal
	if _, err := c.Of(t.Context(), token); !errors.Is(err, docs.err) || errors.As(err, &refused) {
		t.Errorf("a token with trouble: %v", err)
	}
}

// Without runners, or an address of its own, a server takes no key.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	token, public := signed(t)
	docs := &runners{runner: runnerspec.Runner{Name: "far", Type: runnerspec.Remote, Keys: []string{public}}}
	for name, test := range map[string]struct {
		opts  claimant.Options
		words string
	}{
		"no runners": {claimant.Options{Address: "https://agents.example.com"}, "missing or unknown"},
		"no address": {claimant.Options{Runners: docs}, "server.agents.url"},
	} {
		test.opts.Now = func() time.Time { return now }
		if _, err := claimant.New(test.opts).Of(t.Context(), token); !errors.Is(err, holdfast.ErrUnauthorized) || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is wrong with tokens is said of all of them.
func TestCheck(t *testing.T) {
	t.Parallel()
	kinds := []holdfast.RunKind{holdfast.RunPlan}
	hash := func(text string) [32]byte { return sha256.Sum256([]byte(text)) }
	err := claimant.Check([]claimant.Token{
		{Name: "good", SHA256: hash("one"), Kinds: kinds},
		{Name: "", SHA256: hash("two"), Kinds: kinds},
		{Name: "good", SHA256: hash("three"), Kinds: kinds},
		{Name: "empty", SHA256: hash(""), Kinds: kinds},
		{Name: "same", SHA256: hash("one"), Kinds: kinds},
		{Name: "none", SHA256: hash("four")},
		{Name: "a b", SHA256: hash("five"), Kinds: kinds},
		{Name: "x", Agent: "here", SHA256: hash("six"), Kinds: kinds},
		{Name: "y", Agent: "here", SHA256: hash("seven"), Kinds: kinds},
	})
	for _, words := range []string{
		"token 2 has no name", `token "good" is given twice`, `token "empty" is empty`, `tokens "good" and "same" are the same`,
		`token "none" is bound to no kind`, `token "a b": its name`, `tokens "x" and "y" are both that of agent "here"`,
	} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("no %q in %v", words, err)
		}
	}
	if err := claimant.Check([]claimant.Token{{Name: "good", SHA256: hash("one"), Kinds: kinds}}); err != nil {
		t.Errorf("a good one: %v", err)
	}
}
