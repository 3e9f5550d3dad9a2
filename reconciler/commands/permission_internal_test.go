package commands

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/rollout"
)

// records has one pull request, the clusters and the runs.
type records struct {
	Store
	pull holdfast.PullRequestRecord
	runs map[string]holdfast.Run
	// samples are clusters that only a template's impact names.
	samples []string
}

func (r records) PullRequest(_ context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error) {
	if ref != r.pull.PullRequestRef {
		return holdfast.PullRequestRecord{}, holdfast.ErrNotFound
	}
	return r.pull, nil
}

func (r records) Cluster(_ context.Context, name string) (holdfast.ClusterRecord, error) {
	if name != "app" && name != "db" && name != "run-1" {
		return holdfast.ClusterRecord{}, holdfast.ErrNotFound
	}
	return holdfast.ClusterRecord{Name: name, Owner: ref.Repo}, nil
}

func (r records) Run(_ context.Context, id string) (holdfast.Run, error) {
	run, ok := r.runs[id]
	if !ok {
		return run, holdfast.ErrNotFound
	}
	return run, nil
}

func (r records) Impacts(context.Context, holdfast.PullRequestRef) ([]rollout.Impact, error) {
	var group rollout.ImpactGroup
	for _, name := range r.samples {
		group.Clusters = append(group.Clusters, rollout.ImpactCluster{Name: name})
	}
	return []rollout.Impact{{Groups: []rollout.ImpactGroup{group}}}, nil
}

// host is a code host on which everybody has one permission.
type host struct {
	Forge
	permission holdfast.Permission
	fails      error
	base       string
}

func (h host) Permission(context.Context, string, string) (holdfast.Permission, error) {
	return h.permission, h.fails
}

func (h host) PullRequest(context.Context, holdfast.PullRequestRef) (holdfast.PullRequest, error) {
	return holdfast.PullRequest{BaseBranch: h.base}, h.fails
}

var (
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ref  = holdfast.PullRequestRef{Repo: "acme/clusters", Number: 7}
)

func handler(r records, h host) *Handler {
	return NewHandler(Options{
		Store: r, Forges: map[string]Forge{ref.Repo: h}, Now: func() time.Time { return noon },
		Repositories: []Repository{
			{Name: ref.Repo, Branch: "main", Entries: []string{ref.Repo, "acme/next"}},
			{Name: "acme/next", Branch: "next", Entries: []string{ref.Repo, "acme/next"}},
		},
	}, nil)
}

// Who may command is asked of the code host after the answer, each time.
func TestPermitted(t *testing.T) {
	t.Parallel()
	gone := errors.New("connection refused")
	for name, test := range map[string]struct {
		host    host
		command holdfast.Command
		refused string // empty: permitted
		again   bool   // it has to be asked again
	}{
		"who may write":              {host{permission: holdfast.PermissionWrite}, holdfast.Command{}, "", false},
		"who may read":               {host{permission: holdfast.PermissionRead}, holdfast.Command{}, "needs write permission", false},
		"a stranger":                 {host{fails: holdfast.ErrNotFound}, holdfast.Command{}, "needs write permission", false},
		"the API has checked":        {host{permission: holdfast.PermissionNone}, holdfast.Command{Trusted: true}, "", false},
		"not a repository of ours":   {host{permission: holdfast.PermissionAdmin}, holdfast.Command{PullRequest: holdfast.PullRequestRef{Repo: "evil/fork", Number: 1}}, "not configured", false},
		"unlock of a living run":     {host{permission: holdfast.PermissionWrite}, holdfast.Command{Verb: holdfast.VerbUnlock, Force: true}, "admin permission", false},
		"by an admin":                {host{permission: holdfast.PermissionAdmin}, holdfast.Command{Verb: holdfast.VerbUnlock, Force: true}, "", false},
		"unlock of a dead one":       {host{permission: holdfast.PermissionWrite}, holdfast.Command{Verb: holdfast.VerbUnlock}, "", false},
		"the host is out of reach":   {host{fails: gone}, holdfast.Command{CreatedAt: noon.Add(-time.Hour)}, "", true},
		"the host does not tell":     {host{fails: holdfast.ErrForbidden}, holdfast.Command{CreatedAt: noon.Add(-time.Minute)}, "", true},
		"the host will not tell":     {host{fails: holdfast.ErrForbidden}, holdfast.Command{CreatedAt: noon.Add(-16 * time.Minute)}, "does not say who may command", false},
		"a token that has run out":   {host{fails: holdfast.ErrUnauthorized}, holdfast.Command{CreatedAt: noon.Add(-time.Minute)}, "", true},
		"nor with the best of words": {host{permission: holdfast.PermissionWrite, fails: gone}, holdfast.Command{}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.command.PullRequest.IsZero() {
				test.command.PullRequest = ref
			}
			test.command.Author = "ann"
			err := handler(records{}, test.host).permitted(t.Context(), test.command)
			var refused refusal
			isRefused := errors.As(err, &refused)
			switch {
			case test.refused != "" && (!isRefused || !strings.Contains(string(refused), test.refused)),
				test.again && (err == nil || isRefused),
				test.refused == "" && !test.again && err != nil:
				t.Errorf("permitted() = %v (refused: %t), want %q, again: %t", err, isRefused, test.refused, test.again)
			}
		})
	}
}

// A command is about what the pull request changes, and says why it is not.
func TestTargets(t *testing.T) {
	t.Parallel()
	r := records{runs: map[string]holdfast.Run{"run-1": {Cluster: "db"}, "run-2": {Cluster: "db"}}, samples: []string{"far"}}
	r.pull.PullRequestRef = ref
	r.pull.Clusters = []holdfast.PullRequestCluster{{Name: "app"}, {Name: "db"}, {Name: "shop", Sample: true}}
	onlySamples := r
	onlySamples.pull.Clusters = r.pull.Clusters[2:]
	empty := r
	empty.pull.Clusters = nil
	in := func(verb holdfast.Verb, clusters ...string) holdfast.Command {
		return holdfast.Command{PullRequest: ref, Verb: verb, Clusters: clusters}
	}
	for name, test := range map[string]struct {
		records records
		command holdfast.Command
		want    string // the clusters, or the refusal
	}{
		"all of it":            {r, in(holdfast.VerbApply), "app db"},
		"plans of samples too": {r, in(holdfast.VerbPlan), "app db shop"},
		"one of them":          {r, in(holdfast.VerbApply, "db"), "db"},
		"a sample":             {r, in(holdfast.VerbApply, "shop"), "its plan only shows the effect"},
		"a far one":            {r, in(holdfast.VerbPlan, "far"), "`/holdfast plan --all` plans all"},
		"another one":          {r, in(holdfast.VerbApply, "db", "other"), "does not change cluster \"other\""},
		"samples alone":        {onlySamples, in(holdfast.VerbApply), "the merge applies nothing"},
		"none":                 {empty, in(holdfast.VerbPlan), "changes no cluster"},
		"not known":            {r, holdfast.Command{PullRequest: holdfast.PullRequestRef{Repo: ref.Repo, Number: 8}}, "is not known (yet)"},
		"by the API":           {r, holdfast.Command{Clusters: []string{"app", "db"}}, "app db"},
		"called as a run is":   {r, holdfast.Command{Clusters: []string{"run-1"}}, "run-1"},
		"without a name":       {r, holdfast.Command{}, "name a cluster"},
		"the id of a run":      {r, holdfast.Command{Clusters: []string{"run-2"}}, "there is no cluster \"run-2\""},
		"no such cluster":      {r, holdfast.Command{Clusters: []string{"app", "nope"}}, "there is no cluster \"nope\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			targets, err := handler(test.records, host{}).targets(t.Context(), test.command)
			var refused refusal
			if err != nil && !errors.As(err, &refused) {
				t.Fatal(err)
			}
			var names []string
			for _, target := range targets {
				names = append(names, target.cluster)
			}
			if got := strings.Join(names, " "); err == nil && got != test.want || err != nil && !strings.Contains(string(refused), test.want) {
				t.Errorf("targets() = %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// What is refused for some is done for the others, and a command that is refused for
// all is refused.
func TestEach(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		commentID string
		errs      map[string]error
		reply     string
		refused   string
		uptodate  int
	}{
		"done":                  {"1", nil, "", "", 0},
		"done by the API":       {"", nil, "`app`: queued\n`db`: queued", "", 0},
		"refused for one":       {"1", map[string]error{"db": refuseFor(holdfast.ReasonNotMerged, "")}, "`app`: queued\n`db`: ", "", 0},
		"refused for all":       {"1", map[string]error{"app": refusal("a"), "db": refusal("b")}, "", "`app`: a\n`db`: b", 0},
		"one idle":              {"", map[string]error{"app": errIdle}, "`db`: queued\n`app`: nothing is queued", "", 0},
		"both idle":             {"", map[string]error{"app": errIdle, "db": errIdle}, "", "`app`: nothing is queued or running\n`db`: ", 0},
		"nothing left, API":     {"", map[string]error{"app": errUpToDate, "db": errUpToDate}, "`app`: it is up to date", "", 2},
		"nothing left, comment": {"1", map[string]error{"app": errUpToDate, "db": errUpToDate}, "", "`app`: it is up to date", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := holdfast.Command{CommentID: test.commentID}
			reply, err := handler(records{}, host{}).each(t.Context(), &c, []target{{cluster: "app"}, {cluster: "db"}},
				func(_ context.Context, _ holdfast.Command, t target) (string, error) {
					return "queued", test.errs[t.cluster]
				})
			var refused refusal
			if test.refused != "" {
				if !errors.As(err, &refused) || !strings.HasPrefix(string(refused), test.refused) {
					t.Errorf("each() = %q, %v, want the refusal %q", reply, err, test.refused)
				}
				return
			}
			if err != nil || !strings.HasPrefix(reply, test.reply) || test.reply == "" && reply != "" || len(c.UpToDate) != test.uptodate ||
				name == "one idle" && len(c.Refused) > 0 {
				t.Errorf("each() = %q, %v with %d up to date, want %q with %d", reply, err, len(c.UpToDate), test.reply, test.uptodate)
			}
		})
	}
	broken := errors.New("no records")
	c := holdfast.Command{}
	if _, err := handler(records{}, host{}).each(t.Context(), &c, []target{{cluster: "app"}},
		func(context.Context, holdfast.Command, target) (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("trouble of ours counts as a refusal: %v", err)
	}
}

// Nobody approves their own pull request, or what they have not seen.
func TestApproveIsRefused(t *testing.T) {
	t.Parallel()
	pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: ref, Author: "Ann", Head: "h2"}}
	for words, c := range map[string]holdfast.Command{
		"your own pull request":  {Author: "ann", CommentID: "1", ShownHead: "h2", Shown: []string{"run-1"}},
		"the head has moved":     {Author: "bob", CommentID: "1", ShownHead: "h1", Shown: []string{"run-1"}},
		"no plan had been shown": {Author: "bob", CommentID: "1", ShownHead: "h2"},
	} {
		_, err := handler(records{pull: pr}, host{}).approve(t.Context(), &c, []target{{cluster: "app", pr: &pr}})
		var refused refusal
		if !errors.As(err, &refused) || !strings.Contains(string(refused), words) {
			t.Errorf("approve() = %v, want %q", err, words)
		}
	}
}

// Of two entries of one repository that one obeys which tracks the base branch.
func TestForAnotherEntry(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{"main": "", "next": "acme/next", "feature": ""} {
		r := records{}
		r.pull.PullRequestRef, r.pull.BaseBranch = ref, base
		other, err := handler(r, host{base: base}).forAnotherEntry(t.Context(), holdfast.Command{PullRequest: ref})
		if err != nil || other != want {
			t.Errorf("into %s: %q, %v, want %q", base, other, err, want)
		}
	}
}

// recorded has one record of a cluster.
type recorded struct {
	Store
	rec holdfast.ClusterRecord
}

func (r recorded) Cluster(context.Context, string) (holdfast.ClusterRecord, error) { return r.rec, nil }

// executed are the runs of a cluster, the newest first.
type executed struct {
	lineage.Store
	runs []holdfast.Run
}

func (e executed) Runs(context.Context, holdfast.RunFilter) ([]holdfast.Run, error) {
	return e.runs, nil
}

// A pull request commands what belongs to its repository, or to nobody. Its own plans can be
// canceled, and a run of the former owner of a free name is not its own.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	const open, merged = holdfast.PullRequestOpen, holdfast.PullRequestMerged
	own := holdfast.ClusterRecord{Name: "app", Owner: ref.Repo}
	theirs := holdfast.ClusterRecord{Name: "app", Owner: "acme/other"}
	free, gone := theirs, theirs
	free.Desired.Removed, gone.Deletion = true, &holdfast.Deletion{}
	apply := holdfast.Run{ID: "run-1", Kind: holdfast.RunApply, Status: holdfast.RunRunning}
	for name, test := range map[string]struct {
		rec    holdfast.ClusterRecord
		verb   holdfast.Verb
		state  holdfast.PullRequestState
		barred bool
		runs   []holdfast.Run
	}{
		"its own":                    {own, holdfast.VerbUnlock, merged, false, nil},
		"another's":                  {theirs, holdfast.VerbUnlock, open, true, nil},
		"another's, merged":          {theirs, holdfast.VerbCancel, merged, true, nil},
		"its own plans":              {theirs, holdfast.VerbCancel, open, false, nil},
		"a free name":                {free, holdfast.VerbPlan, open, false, nil},
		"a run that is there still":  {free, holdfast.VerbUnlock, open, true, nil},
		"during its first apply":     {free, holdfast.VerbPlan, open, true, []holdfast.Run{apply}},
		"a name that was given back": {gone, holdfast.VerbUnlock, open, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := handler(records{}, host{})
			h.opts.Store, h.Lineage = recorded{rec: test.rec}, lineage.NewReader(executed{runs: test.runs}, nil)
			pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: ref, State: test.state}}
			barred, err := h.elsewhere(t.Context(), test.verb, pr, "app")
			if err != nil || (barred != "") != test.barred {
				t.Errorf("elsewhere() = %q, %v, want it barred: %t", barred, err, test.barred)
			}
		})
	}
}

// Who asks for a look at a cluster whose repository is no longer configured is told so.
func TestReconcileOfAnUnwatchedCluster(t *testing.T) {
	t.Parallel()
	h := handler(records{}, host{})
	h.opts.Store = orphaned{}
	err := (&Operator{h.shared}).Reconcile(t.Context(), "", "app")
	var refused *holdfast.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Text, "gone, is no longer watched") {
		t.Errorf("Reconcile() = %v, want that the repository is not watched", err)
	}
}

// orphaned has clusters of a repository that is not configured.
type orphaned struct{ Store }

func (orphaned) Cluster(_ context.Context, name string) (holdfast.ClusterRecord, error) {
	return holdfast.ClusterRecord{Name: name, Owner: "gone"}, nil
}
