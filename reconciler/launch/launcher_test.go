package launch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// stage is a runner, and the dispatcher that it works for, as their contracts say.
type stage struct {
	mu       sync.Mutex
	queued   []string
	runs     map[string]holdfast.Run
	tickets  map[string]protocol.Ticket // of running attempts
	jobs     map[string]protocol.Launched
	quota    int // of Jobs; zero: none
	refused  *protocol.LaunchError
	asked    error
	ended    []string
	stopped  []string
	noted    map[string]string
	canceled map[string]bool
	starts   []string
	half     bool   // Start makes half of a Job, and fails
	stubborn bool   // what is stopped does not end
	calls    string // the run whose agent shows its ticket while the launcher looks; empty: none
}

func newStage(queued ...string) *stage {
	return &stage{
		queued: queued, runs: map[string]holdfast.Run{}, tickets: map[string]protocol.Ticket{}, jobs: map[string]protocol.Launched{},
		noted: map[string]string{}, canceled: map[string]bool{},
	}
}

// running makes an attempt that somebody has claimed.
func (s *stage) running(id string, exchanged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := holdfast.AttemptRef{Run: id, Attempt: 1, Fence: 3}
	run := holdfast.Run{ID: id, Status: holdfast.RunRunning, Kind: holdfast.RunApply}
	run.Attempt, run.Fence, run.Runner = 1, 3, "east"
	s.runs[id] = run
	t := protocol.Ticket{AttemptRef: ref, Runner: "east", CreatedAt: time.Now()}
	if exchanged {
		t.ExchangedAt, t.Host = time.Now(), "pod-1"
	}
	s.tickets[id] = t
}

func (s *stage) is(l protocol.Launched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.Attempt, l.Name = 1, "job-"+l.Run
	s.jobs[l.Run] = l
}

func (s *stage) Start(_ context.Context, l protocol.Launch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts = append(s.starts, l.Run)
	if s.half {
		s.jobs[l.Run] = protocol.Launched{Run: l.Run, Attempt: l.Attempt, Name: "job-" + l.Run}
		return &protocol.LaunchError{Reason: holdfast.CauseRunnerUnreachable, Err: errors.New("in the middle")}
	}
	if s.refused != nil {
		return s.refused
	}
	active := 0
	for _, j := range s.jobs {
		if !j.Over {
			active++
		}
	}
	if s.quota > 0 && active >= s.quota {
		return &protocol.LaunchError{Reason: holdfast.CauseRunnerQuota, Waits: true, Err: errors.New("exceeded quota")}
	}
	if _, there := s.jobs[l.Run]; !there {
		s.jobs[l.Run] = protocol.Launched{Run: l.Run, Attempt: l.Attempt, Name: "job-" + l.Run}
	}
	return nil
}

func (s *stage) Stop(_ context.Context, ref holdfast.AttemptRef) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped = append(s.stopped, ref.Run); s.stubborn {
		return nil
	}
	delete(s.jobs, ref.Run)
	return nil
}

func (s *stage) Launched(context.Context) ([]protocol.Launched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []protocol.Launched
	for _, j := range s.jobs {
		list = append(list, j)
	}
	return list, s.asked
}

func (s *stage) Changed() <-chan struct{}                             { return nil }
func (s *stage) Freed() <-chan struct{}                               { return nil }
func (s *stage) Present(context.Context, protocol.ClaimRequest) error { return nil }

func (s *stage) ClaimLaunch(context.Context, string, string) (holdfast.Run, string, error) {
	s.mu.Lock()
	if len(s.queued) == 0 {
		s.mu.Unlock()
		return holdfast.Run{}, "", holdfast.ErrNotFound
	}
	id := s.queued[0]
	s.queued = s.queued[1:]
	s.mu.Unlock()
	s.running(id, false)
	return s.runs[id], "ticket", nil
}

func (s *stage) Ticket(context.Context, string, holdfast.AttemptRef) (string, error) {
	return "ticket", nil
}

func (s *stage) LaunchedAttempts(context.Context, string) ([]protocol.Ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []protocol.Ticket
	for _, t := range s.tickets {
		list = append(list, t)
	}
	return list, nil
}

func (s *stage) Heartbeat(_ context.Context, ref holdfast.AttemptRef, _ protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ticket, ok := s.tickets[ref.Run]; ok && s.calls == ref.Run {
		ticket.ExchangedAt = time.Now()
		s.tickets[ref.Run] = ticket
	}
	if s.canceled[ref.Run] {
		return protocol.HeartbeatReply{Cancel: holdfast.ReasonRequested}, nil
	}
	return protocol.HeartbeatReply{}, nil
}

func (s *stage) NoteLaunch(_ context.Context, ref holdfast.AttemptRef, reason holdfast.Reason, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted[ref.Run] = string(reason)
	return nil
}

func (s *stage) EndUnstarted(_ context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, _ string, final bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tickets[ref.Run].ExchangedAt.IsZero() {
		return holdfast.ErrLocked
	}
	delete(s.tickets, ref.Run)
	s.ended = append(s.ended, fmt.Sprintf("%s unstarted %s %t", ref.Run, cause, final))
	return nil
}

func (s *stage) EndDead(_ context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tickets, ref.Run)
	s.ended = append(s.ended, fmt.Sprintf("%s dead %s", ref.Run, cause))
	return nil
}

func (s *stage) Run(_ context.Context, id string) (holdfast.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run, ok := s.runs[id]
	if _, running := s.tickets[id]; ok && !running {
		run.Status = holdfast.RunErrored
	}
	if !ok {
		return run, holdfast.ErrNotFound
	}
	return run, nil
}

func launcher(t *testing.T, s *stage) *launch.Launcher {
	t.Helper()
	l, err := launch.New(launch.Options{
		Runner: runnerspec.Runner{Name: "east"}, Jobs: s, Dispatcher: s, Runs: s,
		Settings: launch.Settings{Replica: "one", Start: 10 * time.Minute, Timeout: time.Hour, Grace: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// look looks once a second for so long.
func look(t *testing.T, l *launch.Launcher, during time.Duration) {
	t.Helper()
	for end := time.Now().Add(during); ; time.Sleep(time.Second) {
		_ = l.Look(t.Context()) // what is refused is said on the runs
		if !time.Now().Before(end) {
			return
		}
	}
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	const id = "run-1"
	for name, test := range map[string]struct {
		exchanged bool
		job       *protocol.Launched // nil: there is none
		refused   *protocol.LaunchError
		during    time.Duration
		want      []string // ends
		noted     string
		stopped   bool
	}{
		"nobody has called, and it is over": {
			job: &protocol.Launched{Over: true, Reason: holdfast.CauseJobDeleted}, want: []string{"run-1 unstarted JobDeleted false"}, stopped: true,
		},
		"nobody has called, and it is dead": {
			job: &protocol.Launched{Over: true, Dead: true}, want: []string{"run-1 unstarted StartTimeout false"}, stopped: true,
		},
		"it waits for its image": {
			job: &protocol.Launched{Reason: holdfast.CauseImagePullFailed}, during: 9 * time.Minute, noted: "ImagePullFailed",
		},
		"it waits for its image for too long": {
			job: &protocol.Launched{Reason: holdfast.CauseImagePullFailed}, during: 11 * time.Minute,
			want: []string{"run-1 unstarted ImagePullFailed false"}, noted: "ImagePullFailed", stopped: true,
		},
		"it starts and never calls": {
			job: &protocol.Launched{Begun: true}, during: 11 * time.Minute, want: []string{"run-1 unstarted StartTimeout false"}, stopped: true,
		},
		"what it is made of is refused": {
			refused: &protocol.LaunchError{Reason: holdfast.CausePodTemplateRefused, Err: errors.New("x")},
			want:    []string{"run-1 unstarted PodTemplateRefused true"},
		},
		"it may not be started": {
			refused: &protocol.LaunchError{Reason: holdfast.CauseRunnerForbidden, Err: errors.New("x")}, noted: "RunnerForbidden",
		},
		"it was called for, and its machine says that it is dead": {
			exchanged: true, job: &protocol.Launched{Over: true, Dead: true, Reason: holdfast.CauseEvicted}, during: 10 * time.Second,
			want: []string{"run-1 dead Evicted"},
		},
		"its result may still be on its way": {
			exchanged: true, job: &protocol.Launched{Over: true, Dead: true}, during: 3 * time.Second,
		},
		"it was called for, and its Job is over without proof of its end": {
			exchanged: true, job: &protocol.Launched{Over: true, Reason: holdfast.CauseJobDeleted}, during: 24 * time.Hour,
		},
		"it was called for by another one than has died here": {
			exchanged: true, job: &protocol.Launched{Over: true, Dead: true, Host: "elsewhere"}, during: 24 * time.Hour,
		},
		"it was called for by the one that has died here": {
			exchanged: true, job: &protocol.Launched{Over: true, Dead: true, Host: "pod-1"}, during: 10 * time.Second,
			want: []string{"run-1 dead "},
		},
		"it was called for, and its Job is gone": {exchanged: true, during: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				s.running(id, test.exchanged)
				s.refused = test.refused
				if test.job != nil {
					test.job.Run = id
					s.is(*test.job)
				}
				look(t, launcher(t, s), test.during)
				if !slices.Equal(s.ended, test.want) || s.noted[id] != test.noted && test.noted != "" || slices.Contains(s.stopped, id) != test.stopped {
					t.Errorf("ended %v, noted %v, stopped %v", s.ended, s.noted, s.stopped)
				}
				if _, there := s.jobs[id]; test.exchanged && test.job == nil && there {
					t.Error("something was started again for it")
				}
			})
		})
	}
}

// What another process has claimed is started by this one, what is left over is stopped, and
// what belongs to an attempt is left alone.
func TestAdoption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.running("run-claimed", false)
		s.running("run-executed", true)
		s.is(protocol.Launched{Run: "run-executed", Begun: true})
		s.is(protocol.Launched{Run: "run-left", Begun: true})
		s.is(protocol.Launched{Run: "run-ended", Over: true, Dead: true})
		look(t, launcher(t, s), 2*time.Minute)
		if _, ok := s.jobs["run-claimed"]; !ok {
			t.Error("what was claimed was not started")
		}
		if !slices.Equal(s.stopped, []string{"run-left"}) || len(s.ended) > 0 {
			t.Errorf("stopped %v, ended %v", s.stopped, s.ended)
		}
	})
}

// An agent that calls while its attempt is about to be given up has begun: it is not stopped in
// the middle of what may be an apply, but asked to, where somebody has canceled it.
func TestAgentCallsAtTheLastMoment(t *testing.T) {
	t.Parallel()
	for name, canceled := range map[string]bool{"it is late": false, "it is canceled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				s.running("run-1", false)
				s.is(protocol.Launched{Run: "run-1", Begun: true})
				l := launcher(t, s)
				if look(t, l, 9*time.Minute); !canceled {
					time.Sleep(2 * time.Minute)
				}
				s.calls, s.canceled["run-1"] = "run-1", canceled
				look(t, l, 0)
				if len(s.ended) > 0 || len(s.stopped) > 0 {
					t.Errorf("ended %v, stopped %v", s.ended, s.stopped)
				}
			})
		})
	}
}

func TestCanceledBeforeItStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage("run-1")
		l := launcher(t, s)
		look(t, l, time.Second)
		s.canceled["run-1"] = true
		look(t, l, time.Second)
		if !slices.Equal(s.ended, []string{"run-1 unstarted Canceled true"}) || !slices.Contains(s.stopped, "run-1") {
			t.Errorf("ended %v, stopped %v", s.ended, s.stopped)
		}
	})
}

// Five hundred queued runs and a quota of ten: few more are claimed than there may be, and all
// end well.
func TestQuotaOfJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		for i := range 500 {
			s.queued = append(s.queued, fmt.Sprintf("run-%03d", i))
		}
		s.quota = 10
		l := launcher(t, s)
		done := 0
		for step := 0; done < 500; step++ {
			if step > 100_000 {
				t.Fatalf("%d of 500 have ended", done)
			}
			look(t, l, time.Second)
			s.mu.Lock()
			if n := len(s.tickets); n > 10+17 {
				t.Fatalf("%d runs are claimed", n)
			}
			for id := range s.jobs { // each takes a while, and ends well
				if step%7 == 0 {
					delete(s.jobs, id)
					delete(s.tickets, id)
					done++
				}
			}
			s.mu.Unlock()
		}
		if len(s.ended) > 0 {
			t.Errorf("some were ended: %v", s.ended)
		}
	})
}

// Of a runner that cannot be asked, one run says why, and the others wait.
func TestRunnerThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage("run-1", "run-2", "run-3")
		s.asked = &protocol.LaunchError{Reason: holdfast.CauseRunnerUnauthorized, Err: errors.New("x")}
		s.refused = &protocol.LaunchError{Reason: holdfast.CauseRunnerUnauthorized, Err: errors.New("x")}
		l := launcher(t, s)
		look(t, l, time.Minute)
		if s.noted["run-1"] != "RunnerUnauthorized" || len(s.queued) != 2 {
			t.Errorf("noted %v, queued %v", s.noted, s.queued)
		}
		s.asked, s.refused = nil, nil
		look(t, l, time.Minute)
		if len(s.jobs) != 3 || len(s.ended) > 0 {
			t.Errorf("started %v, ended %v", s.jobs, s.ended)
		}
	})
}
