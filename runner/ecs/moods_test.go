package ecs_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/cloudapi"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/ecs"
)

// briefly is a context for a call that may hang.
func briefly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Whatever AWS, or a machine before it, sends instead of an answer: it says nothing of tasks,
// which are as they were once AWS is well again, and none is started twice.
func TestMoods(t *testing.T) {
	for _, mood := range cloudapi.Moods() {
		t.Run(string(mood), func(t *testing.T) {
			l := newLab(t)
			front := &cloudapi.Moody{API: l.aws}
			server := httptest.NewServer(front)
			t.Cleanup(server.Close)
			t.Setenv("AWS_ENDPOINT_URL_STS", server.URL+"/sts")
			t.Setenv("AWS_ENDPOINT_URL_ECS", server.URL+"/ecs")
			tasks := l.open(t)
			start(t, tasks, launch("run-1"))
			until(t, tasks, "run-1", "it runs", begun)
			front.Is(mood)
			for range 4 {
				if err := tasks.Look(briefly(t)); err == nil && mood != cloudapi.Nothing && mood != cloudapi.NoText {
					t.Fatal("it has looked")
				}
			}
			list, err := tasks.Launched(t.Context())
			if len(list) != 1 || list[0].Over || list[0].Dead || !list[0].Begun {
				t.Errorf("it says %+v, %v", list, err)
			}
			wantUnreachable(t, "a start", tasks.Start(briefly(t), launch("run-2")))
			fresh := l.open(t) // which has to assume the role first
			wantUnreachable(t, "a start by another process", fresh.Start(briefly(t), launch("run-3")))
			front.Is(cloudapi.Well)
			for _, run := range []string{"run-2", "run-3"} {
				for _, by := range []*ecs.Tasks{tasks, fresh} {
					startAtLast(t, by, launch(run))
				}
				if n := l.aws.ECS.Started(run); n != 1 {
					t.Errorf("%d tasks were started for %s", n, run)
				}
			}
			until(t, tasks, "run-1", "it still runs", begun)
		})
	}
}

// startAtLast starts a task, although a call that hangs is waited for before.
func startAtLast(t *testing.T, tasks *ecs.Tasks, l protocol.Launch) {
	t.Helper()
	err := tasks.Start(t.Context(), l)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = tasks.Start(t.Context(), l) {
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
}

// wantUnreachable wants that nothing but this is said: a task that AWS says nothing of is not
// one that it refuses.
func wantUnreachable(t *testing.T, what string, err error) {
	t.Helper()
	var refused *protocol.LaunchError
	if !errors.As(err, &refused) || refused.Reason != holdfast.CauseRunnerUnreachable || refused.Waits {
		t.Errorf("%s: %v (%+v)", what, err, refused)
	}
}
