package ecs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/ecs"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// A session that ends is renewed; one that is refused in the middle says so, and the last
// answer is kept.
func TestLookFailsAndRecovers(t *testing.T) {
	l := newLab(t)
	tasks := l.open(t)
	if _, err := tasks.Launched(t.Context()); err == nil {
		t.Error("it says something of tasks before it has looked")
	}
	start(t, tasks, launch("run-1"))
	until(t, tasks, "run-1", "it runs", begun)
	l.aws.Allow(role)
	if err := tasks.Look(t.Context()); err == nil {
		t.Fatal("a role without rights may look")
	}
	list, err := tasks.Launched(t.Context())
	var refused *protocol.LaunchError
	if !errors.As(err, &refused) || refused.Reason != holdfast.CauseCloudForbidden || len(list) != 1 || !list[0].Begun {
		t.Errorf("got %+v, %v", list, err)
	}
	l.aws.Allow(role, actions...)
	until(t, tasks, "run-1", "it runs", begun)
}

// A task is stopped by whoever has not started it, and whoever did sees that it was.
func TestStop(t *testing.T) {
	l := newLab(t)
	tasks := l.open(t)
	start(t, tasks, launch("run-1"))
	until(t, tasks, "run-1", "it runs", begun)
	other := l.open(t)
	if err := other.Stop(t.Context(), holdfast.AttemptRef{Run: "run-1", Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(t.Context(), holdfast.AttemptRef{Run: "run-none", Attempt: 1}); err != nil {
		t.Errorf("to stop what is not there: %v", err)
	}
	p, _ := l.process(t, "run-1")
	if sig := <-p.asks; sig != syscall.SIGTERM {
		t.Errorf("it was sent %s", sig)
	}
	p.ends <- 0
	if got := until(t, tasks, "run-1", "it is over", over); !got.Dead || got.Reason != holdfast.CauseJobDeleted {
		t.Errorf("it says %+v", got)
	}
}

// A task that takes its time to end is asked once: calls of ECS are few, for everybody.
func TestStopIsAskedOnce(t *testing.T) {
	l := newLab(t)
	tasks := l.open(t)
	start(t, tasks, launch("run-1"))
	until(t, tasks, "run-1", "it runs", begun)
	for range 5 {
		if err := tasks.Stop(t.Context(), holdfast.AttemptRef{Run: "run-1", Attempt: 1}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, tasks, "run-1", "it is to stop", func(l protocol.Launched) bool { return l.Reason == holdfast.CauseJobDeleted })
	if err := tasks.Stop(t.Context(), holdfast.AttemptRef{Run: "run-1", Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	if stops := l.aws.Calls("ecs:StopTask"); stops != 1 {
		t.Errorf("ECS was asked %d times", stops)
	}
	p, _ := l.process(t, "run-1")
	p.ends <- 0
}

// A task that exists for longer than it may is stopped, whoever has forgotten it.
func TestDeadline(t *testing.T) {
	l := newLab(t)
	start(t, l.open(t), launch("run-1", func(l *protocol.Launch) { l.Timeout = time.Second }))
	tasks := l.open(t) // a restarted server
	until(t, tasks, "run-1", "it runs", begun)
	p, _ := l.process(t, "run-1")
	until(t, tasks, "run-1", "it is to stop", func(l protocol.Launched) bool { return l.Reason == holdfast.CauseJobDeadline })
	<-p.asks
	p.ends <- 143
	if got := until(t, tasks, "run-1", "it is over", over); got.Reason != holdfast.CauseJobDeadline || !got.Dead {
		t.Errorf("it says %+v", got)
	}
}

// More tasks than a page and a call take are all known, and what has ended is not asked for
// again.
func TestManyTasks(t *testing.T) {
	l := newLab(t)
	tasks := l.open(t)
	const many = 130
	for i := range many {
		start(t, tasks, launch(fmt.Sprintf("run-%d", i)))
	}
	fresh := l.open(t)
	if err := fresh.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := fresh.Launched(t.Context())
	if err != nil || len(list) != many {
		t.Fatalf("%d are known, %v", len(list), err)
	}
	for i := range many {
		until(t, fresh, fmt.Sprintf("run-%d", i), "it runs", begun)
		p, _ := l.process(t, fmt.Sprintf("run-%d", i))
		p.ends <- 0
	}
	for i := range many {
		until(t, fresh, fmt.Sprintf("run-%d", i), "it is over", over)
	}
	before := l.aws.Calls("ecs:DescribeTasks")
	if err := fresh.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := l.aws.Calls("ecs:DescribeTasks") - before; n != 0 {
		t.Errorf("%d calls for what has ended", n)
	}
}

// The loop looks again soon after a start.
func TestRun(t *testing.T) {
	l := newLab(t)
	tasks := l.open(t)
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = tasks.Run(ctx) })
	defer ended.Wait()
	defer stop()
	start(t, tasks, launch("run-1"))
	for {
		changed := tasks.Changed()
		list, _ := tasks.Launched(t.Context())
		if len(list) == 1 && list[0].Begun {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal("nothing changes")
		}
	}
}

func TestReservedVariables(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"TF_LOG": "", "HOLDFAST_TICKET": "environment", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "environment", "HOME": "environment"} {
		got, err := ecs.CheckRunner(runnerspec.Runner{ECS: &runnerspec.ECSTask{Environment: map[string]string{name: "x"}}})
		if got != key || (err == nil) != (key == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
