package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// failingGit has trees of which some reads fail, and compares them with an error if there
// is one.
type failingGit struct {
	reconciler.Git
	fails func(file string) bool
	diff  error
}

func (g *failingGit) Diff(ctx context.Context, repo, from, to string) ([]holdfast.TreeChange, error) {
	if g.diff != nil {
		return nil, g.diff
	}
	return g.Git.Diff(ctx, repo, from, to)
}

func (g *failingGit) Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error) {
	tree, err := g.Git.Tree(ctx, repo, revision)
	return failingTree{tree, g}, err
}

type failingTree struct {
	holdfast.Tree
	git *failingGit
}

func (t failingTree) ReadFile(name string) ([]byte, error) {
	if t.git.fails(name) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("too many open files: %w", holdfast.ErrUnavailable)}
	}
	return t.Tree.ReadFile(name)
}

// withFailingGit has a fleet read its repository through the returned Git.
func withFailingGit(f *fleet) *failingGit {
	git := &failingGit{Git: f.opts.Sources.Git, fails: func(string) bool { return false }}
	f.restart(func(o *reconciler.Options) { o.Sources.Git = git })
	f.look()
	return git
}

// A read that fails for a moment is an error of the look, which is made again: neither a
// fault of the document, which would be kept, nor its removal.
func TestAReadThatFailsOnceLeavesNothing(t *testing.T) {
	t.Parallel()
	together := map[string]string{
		"clusters/all.yaml": document("prod") + "---\n" + document("preprod"), "infra/prod/main.tf": module("one"), "infra/preprod/main.tf": module("one"),
	}
	tests := map[string]struct {
		now     string
		read    int64 // which one of the file fails
		removed bool
	}{
		"when it is taken in":           {now: "# new\n" + together["clusters/all.yaml"], read: 1},
		"when the removal is looked at": {now: document("preprod"), read: 2, removed: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, together)
			f.adopt()
			git := withFailingGit(f)
			var reads atomic.Int64
			git.fails = func(file string) bool { return file == "clusters/all.yaml" && reads.Add(1) == tt.read }
			f.repo.Commit(master, "change", map[string]string{"clusters/all.yaml": tt.now})
			if err := f.r.TakeIn(t.Context(), infra, 0); !errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("the look that failed ends with %v", err)
			}
			f.settle()
			f.look()
			if rec := f.cluster("prod"); len(rec.Desired.Faults) > 0 || rec.Desired.Missing != "" || rec.Desired.Removed != tt.removed {
				t.Errorf("prod: faults %v, missing %q, removed %t", rec.Desired.Faults, rec.Desired.Missing, rec.Desired.Removed)
			}
		})
	}
}

// What is behind a submodule or a link is not read: that a document is no longer found
// there does not prove that it was removed.
func TestAFolderThatIsNotFollowedRemovesNothing(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]string{
		"a submodule": gitserver.Submodule + strings.Repeat("1", 40),
		"a link":      gitserver.Symlink + "../elsewhere",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			delete(files, "clusters/prod.yaml")
			files["clusters/pay/prod.yaml"] = document("prod")
			f := newFleet(t, files)
			f.adopt()
			f.open(1, map[string]string{"clusters/pay": now})
			if faults := f.pullRequest(1).Faults; !strings.Contains(faults.Error(), "it is not known what happened to clusters/pay/prod.yaml: pay is a s") {
				t.Errorf("the faults are %v", faults)
			}
			f.merge(1, bySquash)
			for range 2 {
				if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing {
					t.Errorf("prod waits for %q, removed: %t", rec.Waiting, rec.Desired.Removed)
				}
				f.restart()
				f.look()
			}
		})
	}
}

// A pull request that cannot be read, for a reason that does not pass, says so until it can.
func TestAPullRequestThatCannotBeReadSaysSo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	git := withFailingGit(f)
	f.openUnnoticed(1, map[string]string{"infra/prod/main.tf": module("two")})
	head := f.forge.get(1).Head
	looks := func(cause error) {
		t.Helper()
		git.diff = cause
		for range 2 { // what fails at once may have come too early
			f.clock.Advance(2 * time.Minute)
			if err := f.r.TakeIn(t.Context(), infra, 1); !errors.Is(err, cause) {
				t.Fatalf("a look ends with %v", err)
			}
		}
		f.settle()
		f.post()
	}
	looks(fmt.Errorf("the mirror: %w", holdfast.ErrUnavailable))
	if got := f.forge.told(head, holdfast.ContextPlan); len(got) > 0 {
		t.Errorf("while something is away: %q", got)
	}
	looks(errors.New("too many files and folders"))
	if got := f.forge.told(head, holdfast.ContextPlan); len(got) != 1 || !strings.HasPrefix(got[0], "error the changes of the pull request cannot be read: ") {
		t.Errorf("the status is %q", got)
	}
	for _, words := range []string{"Nothing is planned", "too many files and folders", "retried automatically"} {
		if body := f.comment(1); !strings.Contains(body, words) {
			t.Errorf("the comment does not say %q:\n%s", words, body)
		}
	}
	git.diff = nil
	f.lookAt(1)
	f.executeAll(good)
	if got := f.forge.status(head, holdfast.ContextPlan); got != holdfast.StatusSuccess || f.pullRequest(1).Reason != "" {
		t.Errorf("mended, the status is %s, the reason %q", got, f.pullRequest(1).Reason)
	}
}
