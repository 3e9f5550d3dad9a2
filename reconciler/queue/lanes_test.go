package queue_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

func lane(key string) string { name, _, _ := strings.Cut(key, "/"); return name }

// All workers of a lane hang: those of another one are served.
func TestLaneThatHangs(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	l := queue.NewLanes(lane)
	hang, hanging, served := make(chan struct{}), make(chan struct{}), make(chan string)
	worked := make(chan error, 1)
	go func() {
		worked <- l.Work(ctx, slog.New(slog.DiscardHandler), 2, func(_ context.Context, key string) error {
			if lane(key) == "bad" {
				hanging <- struct{}{}
				<-hang
				return nil
			}
			served <- key
			return nil
		})
	}()
	for _, key := range []string{"bad/1", "bad/2", "bad/3"} {
		l.Add(key)
	}
	<-hanging
	<-hanging
	for _, key := range []string{"good/1", "other/1", "good/2"} {
		l.Add(key)
		if got := <-served; got != key {
			t.Errorf("served is %q, want %q", got, key)
		}
	}
	if got := l.Depth(); got != 1 {
		t.Errorf("Depth() = %d, want the one that waits in the lane that hangs", got)
	}
	stop()
	close(hang)
	if err := <-worked; err != nil {
		t.Error(err)
	}
}

func TestLanesStep(t *testing.T) {
	t.Parallel()
	l := queue.NewLanes(lane)
	for _, key := range []string{"a/1", "b/1", "a/2", "a/1"} {
		l.Add(key)
	}
	var got []string
	for {
		more, err := l.Step(t.Context(), func(_ context.Context, key string) error { got = append(got, key); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	if want := "a/1 a/2 b/1"; strings.Join(got, " ") != want {
		t.Errorf("worked on %q, want %q", got, want)
	}
	l.Close()
	l.Add("c/1")
	if l.Depth() != 0 {
		t.Error("closed lanes take a key")
	}
}
