package launchdesk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server/launchdesk"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// launches have run-1, which was launched for east, run-2, which an agent of east has claimed,
// and run-3, which was launched for west.
type launches struct {
	calls  []string
	fenced bool
}

func (l *launches) note(format string, args ...any) {
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
}

func (l *launches) ClaimLaunch(_ context.Context, runner, isolation string) (holdfast.Run, string, error) {
	l.note("claim %s %s", runner, isolation)
	run, _ := l.Run(context.Background(), "run-1")
	return run, "the ticket", nil
}

func (l *launches) Ticket(_ context.Context, runner string, ref holdfast.AttemptRef) (string, error) {
	l.note("ticket %s %s", runner, ref.Run)
	return "the ticket", nil
}

func (l *launches) Freed() <-chan struct{} { return nil }

func (l *launches) LaunchedAttempts(context.Context, string) ([]protocol.Ticket, error) {
	return []protocol.Ticket{
		{AttemptRef: ref("run-1"), Agent: "east/run-1-1", CreatedAt: now.Add(-time.Minute)},
		{AttemptRef: ref("run-9"), Agent: "east/run-9-1", CreatedAt: now, ExchangedAt: now, Host: "pod-9"},
		{AttemptRef: ref("run-3"), Agent: "east/run-3-1"}, // as a record could only say by mistake
		{AttemptRef: ref("run-7"), Agent: "east/run-7-1", CreatedAt: now},
	}, nil
}

func (l *launches) Heartbeat(_ context.Context, ref holdfast.AttemptRef, beat protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	if ref.Run == "run-7" {
		return protocol.HeartbeatReply{}, fmt.Errorf("run %s: %w", ref.Run, holdfast.ErrDamaged)
	}
	l.note("beat %s %d", ref.Run, beat.Fence)
	if l.fenced {
		return protocol.HeartbeatReply{}, holdfast.ErrFenced
	}
	return protocol.HeartbeatReply{Cancel: holdfast.ReasonRequested}, nil
}

func (l *launches) NoteLaunch(_ context.Context, ref holdfast.AttemptRef, reason holdfast.Reason, detail string) error {
	l.note("note %s %s %s", ref.Run, reason, detail)
	return nil
}

func (l *launches) EndUnstarted(_ context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, _ string, final bool) error {
	l.note("unstarted %s %s %t", ref.Run, cause, final)
	return nil
}

func (l *launches) EndDead(_ context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, _ string) error {
	l.note("dead %s %s", ref.Run, cause)
	return nil
}

func (l *launches) Run(_ context.Context, id string) (holdfast.Run, error) {
	run := holdfast.Run{ID: id, Status: holdfast.RunRunning, Kind: holdfast.RunApply}
	run.Attempt, run.Fence, run.Runner, run.Agent = 1, 3, "east", "east/"+id+"-1"
	run.Document = holdfast.Cluster{Name: "prod-eu", Project: "payments", Environment: "production"}
	switch id {
	case "run-1":
	case "run-2":
		run.Agent = "east/host-1"
	case "run-3":
		run.Runner, run.Agent = "west", "west/run-3-1"
	case "run-4":
		run.Status = holdfast.RunApplied
	case "run-5":
		run.Runner = ""
	case "run-7":
		return holdfast.Run{}, fmt.Errorf("run %s: %w", id, holdfast.ErrDamaged)
	default:
		return holdfast.Run{}, holdfast.ErrNotFound
	}
	return run, nil
}

func ref(run string) holdfast.AttemptRef { return holdfast.AttemptRef{Run: run, Attempt: 1, Fence: 3} }

func newDesk(l *launches, unusable error) *launchdesk.Desk {
	return launchdesk.New(launchdesk.Options{
		Launches: l, Runs: l, Now: func() time.Time { return now },
		Settings: func(context.Context, runnerspec.Runner) (protocol.LaunchSettings, error) {
			return protocol.LaunchSettings{Isolation: "landlock"}, unusable
		},
		Limits: func(holdfast.Cluster) holdfast.RunLimits { return holdfast.RunLimits{Memory: 1 << 30} },
	})
}

var east = runnerspec.Runner{Name: "east", Type: runnerspec.KubernetesAgent}

// Whatever a launcher asks for, it gets nothing that is not its runner's, or was not launched.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call string
		req  protocol.LaunchRequest
		err  error  // nil: it is done
		done string // what is called
	}{
		"a ticket":                      {"tickets", protocol.LaunchRequest{AttemptRef: ref("run-1")}, nil, "ticket east run-1"},
		"a ticket of an agent's run":    {"tickets", protocol.LaunchRequest{AttemptRef: ref("run-2")}, holdfast.ErrFenced, ""},
		"a ticket of another runner":    {"tickets", protocol.LaunchRequest{AttemptRef: ref("run-3")}, holdfast.ErrNotFound, ""},
		"a ticket of the local runner":  {"tickets", protocol.LaunchRequest{AttemptRef: ref("run-5")}, holdfast.ErrNotFound, ""},
		"a ticket of what has ended":    {"tickets", protocol.LaunchRequest{AttemptRef: ref("run-4")}, holdfast.ErrFenced, ""},
		"a ticket of another attempt":   {"tickets", protocol.LaunchRequest{AttemptRef: holdfast.AttemptRef{Run: "run-1", Attempt: 2, Fence: 3}}, holdfast.ErrFenced, ""},
		"a ticket of another fence":     {"tickets", protocol.LaunchRequest{AttemptRef: holdfast.AttemptRef{Run: "run-1", Attempt: 1, Fence: 4}}, holdfast.ErrFenced, ""},
		"a run":                         {"runs", protocol.LaunchRequest{AttemptRef: ref("run-1")}, nil, ""},
		"a run that an agent has":       {"runs", protocol.LaunchRequest{AttemptRef: ref("run-2")}, nil, ""},
		"a run of another runner":       {"runs", protocol.LaunchRequest{AttemptRef: ref("run-3")}, holdfast.ErrNotFound, ""},
		"a run of nobody":               {"runs", protocol.LaunchRequest{AttemptRef: ref("run-0")}, holdfast.ErrNotFound, ""},
		"a note":                        {"notes", protocol.LaunchRequest{AttemptRef: ref("run-1"), Reason: holdfast.CauseUnschedulable, Detail: "x"}, nil, "note run-1 Unschedulable x"},
		"no note":                       {"notes", protocol.LaunchRequest{AttemptRef: ref("run-1")}, nil, "note run-1  "},
		"a note on another runner's":    {"notes", protocol.LaunchRequest{AttemptRef: ref("run-3"), Reason: holdfast.CauseUnschedulable}, holdfast.ErrNotFound, ""},
		"a note of its own words":       {"notes", protocol.LaunchRequest{AttemptRef: ref("run-1"), Reason: "Bribed"}, holdfast.ErrForbidden, ""},
		"a note that is a novel":        {"notes", protocol.LaunchRequest{AttemptRef: ref("run-1"), Reason: holdfast.CauseUnschedulable, Detail: strings.Repeat("x", 5000)}, holdfast.ErrForbidden, ""},
		"an end of nothing":             {"ends", protocol.LaunchRequest{AttemptRef: ref("run-1"), Reason: holdfast.CauseStartTimeout, Final: true}, nil, "unstarted run-1 StartTimeout true"},
		"an end without a reason":       {"ends", protocol.LaunchRequest{AttemptRef: ref("run-1")}, holdfast.ErrForbidden, ""},
		"a death":                       {"ends", protocol.LaunchRequest{AttemptRef: ref("run-1"), Dead: true}, nil, "dead run-1 "},
		"a death of an agent's":         {"ends", protocol.LaunchRequest{AttemptRef: ref("run-2"), Dead: true, Reason: holdfast.CauseEvicted}, holdfast.ErrFenced, ""},
		"a death at another runner":     {"ends", protocol.LaunchRequest{AttemptRef: ref("run-3"), Dead: true, Reason: holdfast.CauseEvicted}, holdfast.ErrNotFound, ""},
		"a death of a gate's own words": {"ends", protocol.LaunchRequest{AttemptRef: ref("run-1"), Dead: true, Reason: holdfast.ReasonUnreviewed}, holdfast.ErrForbidden, ""},
		"a claim":                       {"claims", protocol.LaunchRequest{}, nil, "claim east landlock"},
		"what there is not":             {"secrets", protocol.LaunchRequest{}, holdfast.ErrNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &launches{}
			_, err := newDesk(l, nil).Answer(t.Context(), east, test.call, test.req)
			if !errors.Is(err, test.err) || test.err == nil && err != nil || strings.Join(l.calls, ", ") != test.done {
				t.Errorf("%v, done %q", err, l.calls)
			}
		})
	}
}

// The list of attempts is the sign of life of those whose agents have not called, and of no
// others.
func TestAttempts(t *testing.T) {
	t.Parallel()
	l := &launches{}
	answer, err := newDesk(l, nil).Answer(t.Context(), east, "attempts", protocol.LaunchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	list := answer.(protocol.LaunchAttempts).Attempts
	want := []protocol.LaunchAttempt{
		{AttemptRef: ref("run-1"), Agent: "east/run-1-1", Age: time.Minute, Cancel: holdfast.ReasonRequested},
		{AttemptRef: ref("run-9"), Agent: "east/run-9-1", Age: 1, Exchanged: true, Host: "pod-9"},
	}
	if !slices.Equal(list, want) || !slices.Equal(l.calls, []string{"beat run-1 3"}) {
		t.Errorf("got %+v, called %q", list, l.calls)
	}
	l.fenced = true
	if answer, err = newDesk(l, nil).Answer(t.Context(), east, "attempts", protocol.LaunchRequest{}); err != nil || len(answer.(protocol.LaunchAttempts).Attempts) != 1 {
		t.Errorf("with one that has ended: %+v, %v", answer, err)
	}
}

// What is shown of a run is what a Job is made of.
func TestRunIsShown(t *testing.T) {
	t.Parallel()
	answer, err := newDesk(&launches{}, nil).Answer(t.Context(), east, "claims", protocol.LaunchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	claimed := answer.(protocol.LaunchTicket)
	want := protocol.LaunchRun{
		AttemptRef: ref("run-1"), Runner: "east", Kind: holdfast.RunApply, Status: holdfast.RunRunning,
		Cluster: "prod-eu", Project: "payments", Environment: "production", Limits: holdfast.RunLimits{Memory: 1 << 30},
	}
	if claimed.Ticket != "the ticket" || *claimed.Run != want {
		t.Errorf("got %+v of %+v", claimed, claimed.Run)
	}
}

// Without what Jobs need nothing is claimed.
func TestUnusable(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"settings", "claims"} {
		l := &launches{}
		_, err := newDesk(l, errors.New("set server.agents.url")).Answer(t.Context(), east, call, protocol.LaunchRequest{})
		if !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "set server.agents.url") || len(l.calls) > 0 {
			t.Errorf("%s: %v, called %q", call, err, l.calls)
		}
	}
}
