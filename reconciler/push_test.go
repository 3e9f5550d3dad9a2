package reconciler_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// withoutTemplates has the repository publish none: a push to it may have nothing to do
// with a pull request then.
func withoutTemplates(opts *reconciler.Options) { opts.Sources.Repositories[0].Templates = nil }

// TestUnrelatedPushLeavesPullRequestsAlone: a push that changes nothing of what an open
// pull request would do is not decided about nor shown, and where that is known from what
// it touches, the pull request is not looked at; one that changes it is.
func TestUnrelatedPushLeavesPullRequestsAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		with   []func(*reconciler.Options)
		looked bool
	}{
		"clusters alone":        {[]func(*reconciler.Options){withoutTemplates}, false},
		"next to its templates": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters(), test.with...)
			f.adopt()
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(planned)
			plan, before := f.newest("prod"), f.pullRequest(1)

			f.repo.Commit(master, "elsewhere", map[string]string{"infra/preprod/main.tf": module("three")})
			f.look()
			if after := f.pullRequest(1); (after.Base != before.Base) != test.looked || (after.Result != before.Result) != test.looked {
				t.Errorf("the record had base %s and result %s, and has %s and %s", before.Base, before.Result, after.Base, after.Result)
			}
			if now := f.newest("prod"); now.ID != plan.ID || now.Version != plan.Version {
				t.Errorf("its plan was %s, version %d, and is %s, version %d", plan.ID, plan.Version, now.ID, now.Version)
			}

			f.repo.Commit(master, "here too", map[string]string{"infra/prod/more.tf": module("four")})
			f.look()
			if now := f.newest("prod"); now.ID == plan.ID && now.Status != holdfast.RunQueued {
				t.Error("a push that changes what the pull request would do makes no new plan")
			}
		})
	}
}

// TestUnrelatedPushLeavesEditsOfATemplateAlone: however many pull requests edit the document of
// a template in a folder, none is looked at for a push that has nothing to do with it or with the
// clusters that are made from it.
func TestUnrelatedPushLeavesEditsOfATemplateAlone(t *testing.T) {
	t.Parallel()
	const at = "templates/web/template.yaml"
	more := webTemplate("")[at] + "        - {name: more, source: ./modules/site}\n"
	for name, test := range map[string]struct {
		push   map[string]string
		looked bool
	}{
		"another cluster's module": {map[string]string{"infra/prod/main.tf": module("two")}, false},
		"another cluster":          {map[string]string{"clusters/new.yaml": document("new"), "infra/new/main.tf": module("one")}, false},
		"a module of the template": {map[string]string{"templates/web/modules/site/main.tf": module("two")}, true},
		"a cluster of it":          {map[string]string{"clusters/a.yaml": "# edited\n" + templated("web-a", "{path: ../templates/web}")}, true},
		"a new cluster of it":      {map[string]string{"clusters/c.yaml": templated("web-c", "{path: ../templates/web}")}, true},
		"another template":         {map[string]string{"templates/other/template.yaml": more}, true}, // it has to do with everything
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoOfTemplate(), withoutTemplates)
			f.adopt()
			f.open(1, map[string]string{at: more})
			f.executeAll(planned)
			before := f.pullRequest(1)
			if got := f.affected(1); len(got) != 2 {
				t.Fatalf("the pull request affects %v", got)
			}
			f.repo.Commit(master, name, test.push)
			f.look()
			if after := f.pullRequest(1); (after.Base != before.Base) != test.looked {
				t.Errorf("the record had base %s, and has %s", before.Base.Short(), after.Base.Short())
			}
		})
	}
}

// TestPullRequestsAreLookedAtAgain: what a record was made from is not believed forever,
// nor over a start or a change of the record by somebody else.
func TestPullRequestsAreLookedAtAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), withoutTemplates)
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(planned)
	push := func(text string) (looked bool) {
		t.Helper()
		before := f.pullRequest(1)
		f.repo.Commit(master, text, map[string]string{"infra/preprod/main.tf": module(text)})
		f.look()
		return f.pullRequest(1).Base != before.Base
	}
	if push("three") || push("four") {
		t.Error("a pull request was looked at that pushes have nothing to do with")
	}
	f.clock.Advance(2 * time.Hour)
	if !push("five") || push("six") {
		t.Error("it was not looked at when that was long ago, or twice")
	}
	f.restart()
	if !push("seven") || push("eight") {
		t.Error("it was not looked at after a start, or twice")
	}
	rec := f.pullRequest(1)
	rec.Title = "renamed"
	_, err := f.store.SavePullRequest(t.Context(), rec)
	f.must(err)
	if !push("nine") || push("ten") {
		t.Error("it was not looked at after a change of its record, or twice")
	}
}

// TestMergesAmongPushesAreFound: of several pull requests that are merged by one push, the
// forge names the last one.
func TestMergesAmongPushesAreFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), withoutTemplates)
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.open(2, map[string]string{"infra/preprod/main.tf": module("two")})
	f.open(3, map[string]string{"infra/other/main.tf": module("two")})
	f.executeAll(planned)
	f.mergeUnnoticed(1, byMerge)
	f.mergeUnnoticed(2, byMerge)
	f.must(f.r.TakeIn(t.Context(), infra, 0))
	for number, want := range map[int]holdfast.PullRequestState{
		1: holdfast.PullRequestMerged, 2: holdfast.PullRequestMerged, 3: holdfast.PullRequestOpen,
	} {
		if got := f.pullRequest(number).State; got != want {
			t.Errorf("pull request %d is %s, want %s", number, got, want)
		}
	}
}
