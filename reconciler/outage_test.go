package reconciler_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/reconciler"
)

const blueprints = "blueprints"

// A repository of templates that cannot be read, with a server that has just been
// started: what is recorded of a tag is used. What is not recorded is an error that
// names the repository, in red, until the repository is back.
func TestTemplateRepositoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := memory.Dir(t)
	templates := gitserver.NewRepo(t, filepath.Join(dir, "blueprints.git"))
	templates.Commit(master, "first", webTemplate("one"))
	templates.Tag("web/v1.0.0", master)
	templates.Commit(master, "second", webTemplate("two"))
	templates.Tag("web/v1.1.0", master)
	files := twoClusters()
	files["clusters/web.yaml"] = templated("web-a", "{name: web, version: 1.0.0}")
	f := newFleet(t, files)
	start := func() {
		f.restart(func(o *reconciler.Options) {
			git, err := gitsource.New(gitsource.Options{Dir: filepath.Join(dir, "mirrors"), Repositories: []gitsource.Repository{
				{Name: infra, URL: f.repo.Path, Branch: master}, {Name: blueprints, URL: templates.Path, Branch: master},
			}})
			f.must(err)
			o.Sources.Git = git
			o.Sources.Forges[blueprints] = o.Sources.Forges[infra]
			o.Sources.Repositories[0].Templates = nil
			o.Sources.Repositories = append(o.Sources.Repositories[:1], reconciler.Repository{
				Name: blueprints, Branch: master, Templates: map[string]string{"web": "templates/web"},
			})
		})
	}
	start()
	f.must(f.r.TakeIn(t.Context(), blueprints, 0))
	f.adopt()

	away := templates.Path + ".away"
	f.must(os.Rename(templates.Path, away))
	start()
	if err := f.r.TakeIn(t.Context(), blueprints, 0); err == nil {
		t.Fatal("a repository that is not there was read")
	}
	if missing := f.r.Ready(); len(missing) != 2 {
		t.Errorf("before anything was read, it waits for %v", missing)
	}
	f.look()
	if missing := f.r.Ready(); len(missing) != 0 {
		t.Errorf("it waits for %v", missing)
	}
	if rec := f.cluster("web-a"); rec.Waiting != "" || len(rec.Desired.Faults) > 0 {
		t.Errorf("the version is recorded, and it waits for %q: %v", rec.Waiting, rec.Desired.Faults)
	}
	f.open(1, map[string]string{"clusters/web.yaml": templated("web-a", "{name: web, version: 1.0.0}") + "  engine: {version: \"~> 1.9\"}\n"})
	if got, faults := f.affected(1), f.pullRequest(1).Faults; !slices.Equal(got, []string{"web-a"}) || len(faults) > 0 {
		t.Errorf("of a recorded version, it affects %v, faults %v", got, faults)
	}
	f.open(2, map[string]string{"clusters/new.yaml": templated("new", "{name: web, version: 1.1.0}")})
	const want = "clusters/new.yaml:7:20: template repository blueprints cannot be read: it does not exist, or access to it was lost"
	if faults := f.pullRequest(2).Faults; len(faults) != 1 || !strings.HasPrefix(faults.Error(), want) {
		t.Errorf("of another one, the faults are %v", faults)
	}
	f.repo.Commit(master, "new", map[string]string{"clusters/new.yaml": templated("new", "{name: web, version: 1.1.0}")})
	f.look()
	if rec := f.cluster("new"); rec.Waiting != holdfast.ReasonInvalid {
		t.Errorf("it waits for %q", rec.Waiting)
	}

	f.must(os.Rename(away, templates.Path))
	f.must(f.r.TakeIn(t.Context(), blueprints, 0))
	f.settle()
	f.expectRuns("new", "plan queued Unreviewed")

	// A tag that goes is told as deleted.
	f.executeAll(good)
	templates.DeleteRef("refs/tags/web/v1.0.0")
	f.must(f.r.TakeIn(t.Context(), blueprints, 0))
	f.settle()
	if faults := f.cluster("web-a").Desired.Faults.Error(); !strings.Contains(faults, "template web has no version 1.0.0: its tag web/v1.0.0 was deleted") {
		t.Errorf("a tag was deleted: %s", faults)
	}
}

// unreadableGit fetches, and has none of the trees of one repository.
type unreadableGit struct {
	reconciler.Git
	repo string // empty: has all
}

func (g *unreadableGit) Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error) {
	if repo == g.repo {
		return nil, errors.New("the mirror cannot be read")
	}
	return g.Git.Tree(ctx, repo, revision)
}

// A repository whose host accepts and does not answer keeps the others from being ready
// for a moment only; while it is alone, nothing is.
func TestReadyWhileAHostHangs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	_, look := withOther(t, f)
	git := &unreadableGit{Git: f.opts.Sources.Git, repo: other}
	f.restart(func(o *reconciler.Options) { o.Sources.Git = git })
	is := func(when string, missing, passedBy []string) {
		t.Helper()
		if got, also := f.r.Ready(), f.r.PassedBy(); !slices.Equal(got, missing) || !slices.Equal(also, passedBy) {
			t.Errorf("%s it waits for %v and not for %v", when, got, also)
		}
	}
	is("at first", []string{infra, other}, nil)
	f.clock.Advance(16 * time.Second)
	is("while nothing was read", []string{infra, other}, nil)
	f.look()
	is("beside one that hangs", nil, []string{other})
	f.restart()
	f.look()
	is("for a moment", []string{other}, nil)
	f.clock.Advance(16 * time.Second)
	if err := f.r.TakeIn(t.Context(), other, 0); err == nil {
		t.Fatal("it was read")
	}
	is("while what has answered is taken in", []string{other}, nil)
	git.repo = ""
	look()
	is("in the end", nil, nil)
}
