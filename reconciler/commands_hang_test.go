package reconciler_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// silentForge does not say who may command.
type silentForge struct {
	reconciler.Forge
	asked, end chan struct{}
}

func (g silentForge) Permission(context.Context, string, string) (holdfast.Permission, error) {
	g.asked <- struct{}{}
	<-g.end
	return "", holdfast.ErrUnavailable
}

// TestCommandsOfAHostThatHangs: comments that wait for their code host keep neither a
// command of the API waiting nor a comment elsewhere.
func TestCommandsOfAHostThatHangs(t *testing.T) {
	t.Parallel()
	const elsewhere = "elsewhere"
	silent := silentForge{asked: make(chan struct{}, 10), end: make(chan struct{})}
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		silent.Forge = opts.Sources.Forges[infra]
		opts.Sources.Forges[elsewhere] = silent.Forge
		opts.Sources.Forges[infra] = silent
	})
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	say := func(repo, id string) holdfast.Command {
		c := holdfast.Command{
			ID: id, CommentID: id, PullRequest: holdfast.PullRequestRef{Repo: repo, Number: 1}, Author: "eve",
			Verb: holdfast.VerbPlan, Status: holdfast.CommandReceived, CreatedAt: f.clock.Now(),
		}
		_, err := f.store.StoreCommand(t.Context(), c)
		f.must(err)
		return c
	}
	say(infra, "hangs")
	ctx, stop := context.WithCancel(t.Context())
	ctx, abort := queue.Abortable(ctx)
	done := make(chan error, 1)
	go func() { done <- f.r.Run(ctx) }()
	<-silent.asked

	answered := make(chan holdfast.Command, 1)
	go func() {
		c, err := f.r.Command(ctx, holdfast.Command{Author: "alice", Trusted: true, Verb: holdfast.VerbCancel, Clusters: []string{"prod"}})
		if err != nil {
			t.Errorf("Command() = %v", err)
		}
		answered <- c
	}()
	other := say(elsewhere, "answered")
	f.r.CommandStored()
	late := time.After(time.Minute)
	select {
	case <-answered:
	case <-late:
		t.Error("a cancel waits for the code host")
	}
	for refused := false; !refused; {
		c, err := f.store.Command(t.Context(), other.ID)
		f.must(err)
		refused = c.Status == holdfast.CommandRefused
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			t.Fatal("a comment elsewhere waits for the code host")
		}
	}
	stop()
	abort()
	close(silent.end)
	f.must(<-done)
}

// doubtfulForge does not say of eve whether she may command, until end.
type doubtfulForge struct {
	reconciler.Forge
	asked chan string
	end   chan struct{}
}

func (g doubtfulForge) Permission(ctx context.Context, repo, user string) (holdfast.Permission, error) {
	g.asked <- user
	if user == "eve" {
		<-g.end
	}
	return g.Forge.Permission(ctx, repo, user)
}

// TestPermissionsAreAskedNextToOneAnother in a repository; what was said later of the
// same pull request waits.
func TestPermissionsAreAskedNextToOneAnother(t *testing.T) {
	t.Parallel()
	doubtful := doubtfulForge{asked: make(chan string, 10), end: make(chan struct{})}
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		doubtful.Forge = opts.Sources.Forges[infra]
		opts.Sources.Forges[infra] = doubtful
	})
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.open(2, map[string]string{"infra/preprod/main.tf": module("two")})
	say := func(id, author string, number int) {
		_, err := f.store.StoreCommand(t.Context(), holdfast.Command{
			ID: id, CommentID: id, PullRequest: holdfast.PullRequestRef{Repo: infra, Number: number}, Author: author,
			Verb: holdfast.VerbCancel, Status: holdfast.CommandReceived, CreatedAt: f.clock.Now(),
		})
		f.must(err)
		f.clock.Advance(time.Second)
	}
	answered := func(id string) bool {
		c, err := f.store.Command(t.Context(), id)
		f.must(err)
		return c.Status != holdfast.CommandReceived
	}
	say("first", "eve", 1)
	say("later", "alice", 1)
	ctx, stop := context.WithCancel(t.Context())
	ctx, abort := queue.Abortable(ctx)
	done := make(chan error, 1)
	go func() { done <- f.r.Run(ctx) }()
	if user := <-doubtful.asked; user != "eve" {
		t.Errorf("%s is asked for first", user)
	}
	say("other", "bob", 2)
	f.r.CommandStored()
	for late := time.After(time.Minute); !answered("other"); {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			t.Fatal("a comment waits for the permission of another pull request's author")
		}
	}
	if answered("first") || answered("later") {
		t.Error("a command is answered before its author's permission, or before an earlier one of its pull request")
	}
	close(doubtful.end)
	for late := time.After(time.Minute); !answered("later"); {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			t.Fatal("the later command is never answered")
		}
	}
	stop()
	abort()
	f.must(<-done)
}
