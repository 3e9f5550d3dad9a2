package intake

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Of a repository that another replica has led nothing is remembered; that it was taken in
// once stays so for those who ask whether this server is ready.
func TestForget(t *testing.T) {
	t.Parallel()
	m := newMarks()
	nowhere := func(string) bool { return false }
	for _, repo := range []string{"a", "b"} {
		m.markReady(repo)
		m.setResumed(repo)
		m.setBehind(repo)
		m.setRelook(repo)
		m.addRecheck(repo, "app")
		m.setFormer(repo, map[string]bool{"old": true})
	}
	m.forget("a")
	if m.isReady("a") || m.isResumed("a") || m.takeBehind("a") || m.takeRelook("a") || len(m.recheckIn("a")) > 0 || m.term("a") != 1 {
		t.Error("something is remembered of a")
	}
	if changed := m.setFormer("a", map[string]bool{"old": true}); !slices.Equal(changed, []string{"old"}) {
		t.Errorf("of former names %q are new, want old", changed)
	}
	if !m.wasReady("a", nowhere) || m.wasReady("c", nowhere) || !m.wasReady("c", func(string) bool { return true }) || !m.wasReady("c", nowhere) {
		t.Error("it is not known what was taken in once")
	}
	if !m.isReady("b") || !m.isResumed("b") || m.term("b") != 0 {
		t.Error("b was forgotten, too")
	}

	o := newOrigins()
	for _, repo := range []string{"a", "b"} {
		ref := holdfast.PullRequestRef{Repo: repo, Number: 1}
		o.put(origin{ref: ref})
		o.first(holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: ref, State: holdfast.PullRequestOpen}})
	}
	o.forgetAll("a")
	if _, known := o.of(holdfast.PullRequestRef{Repo: "a", Number: 1}); known || len(o.seen) != 1 || len(o.known) != 1 {
		t.Error("a pull request is remembered, or another one is not")
	}
}

// What one repository asks of another one is handed over once, and kept if that fails.
func TestHandOver(t *testing.T) {
	t.Parallel()
	m := newMarks()
	m.addRecheck("a", "web")
	m.addRecheck("a", "app")
	m.setRelook("a")
	got := m.handOver("a")
	if !got.Relook || got.Behind || !slices.Equal(got.Recheck, []string{"app", "web"}) {
		t.Errorf("handed over is %+v", got)
	}
	if again := m.handOver("a"); again.Relook || len(again.Recheck) > 0 {
		t.Errorf("handed over twice: %+v", again)
	}
}
