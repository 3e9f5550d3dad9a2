package local_test

import (
	"bytes"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/forge/local"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/emptystore"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
)

const infra = "infra"

type host struct {
	*testing.T
	forge *local.Forge
	git   *gitsource.Source
	store *datastore.Store
	path  string // of its database
	repo  *gitserver.Repo
	now   time.Time
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := memory.Dir(t)
	h := &host{T: t, repo: gitserver.NewRepo(t, filepath.Join(dir, "infra.git")), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	git, err := gitsource.New(gitsource.Options{
		Dir: filepath.Join(dir, "mirrors"), Repositories: []gitsource.Repository{{Name: infra, URL: h.repo.Path, Branch: "main"}},
	})
	h.must(err)
	h.git = git
	h.path = filepath.Join(dir, "holdfast.db")
	emptyDatabase.Write(t, h.path)
	opts := storeAt(h.path)
	opts.Now = func() time.Time { return h.now }
	h.store, err = datastore.Open(t.Context(), opts)
	h.must(err)
	t.Cleanup(func() { _ = h.store.Close() })
	h.forge, err = local.New(local.Options{
		Git: git, Store: h.store, Branches: map[string]string{infra: "main"},
		Now: func() time.Time { h.now = h.now.Add(time.Second); return h.now },
	})
	h.must(err)
	return h
}

var emptyDatabase = emptystore.New(storeAt)

func storeAt(path string) datastore.Options {
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		panic(err) // a key of ones is one
	}
	return datastore.Options{Path: path, Keys: keys}
}

func (h *host) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *host) commit(branch, name, text string) holdfast.Revision {
	h.Helper()
	return holdfast.Revision(h.repo.Commit(branch, "change", map[string]string{name: text}))
}

func (h *host) branch(name string) holdfast.Revision {
	h.Helper()
	h.repo.Branch(name, "main")
	return h.commit(name, name+".txt", name)
}

func (h *host) pullRequest(number int) holdfast.PullRequest {
	h.Helper()
	pr, err := h.forge.PullRequest(h.Context(), holdfast.PullRequestRef{Repo: infra, Number: number})
	h.must(err)
	return pr
}

func TestBranchesArePullRequests(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if prs, err := h.forge.PullRequests(t.Context(), infra, time.Time{}); err != nil || len(prs) != 0 {
		t.Fatalf("an empty repository has %v, %v", prs, err)
	}
	h.commit("main", "a", "1")
	h.repo.Branch("nothing-new", "main")
	head := h.branch("feature")
	prs, err := h.forge.PullRequests(t.Context(), infra, time.Time{})
	if err != nil || len(prs) != 1 {
		t.Fatalf("pull requests %+v, %v; want one of the branch that has something to merge", prs, err)
	}
	pr := prs[0]
	if pr.Number != 1 || pr.Head != head || pr.Branch != "feature" || pr.State != holdfast.PullRequestOpen || !pr.Mergeable {
		t.Errorf("pull request %+v", pr)
	}
	moved := h.commit("feature", "b", "2")
	if pr = h.pullRequest(1); pr.Head != moved || !pr.UpdatedAt.After(prs[0].UpdatedAt) {
		t.Errorf("after a push: %+v", pr)
	}
	again := h.pullRequest(1)
	if !again.UpdatedAt.Equal(pr.UpdatedAt) {
		t.Error("a look changes it")
	}
	if _, err := h.forge.PullRequest(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 2}); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("another one: %v", err)
	}
}

func TestMergingIsPushing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		merge func(h *host)
		state holdfast.PullRequestState
	}{
		"merge commit": {func(h *host) { h.repo.Merge("main", "feature") }, holdfast.PullRequestMerged},
		"fast-forward": {func(h *host) { h.repo.Branch("main", "feature") }, holdfast.PullRequestMerged},
		"squash":       {func(h *host) { h.repo.Squash("main", "feature", "one") }, holdfast.PullRequestMerged},
		"merged, with the branch deleted": {func(h *host) {
			h.repo.Merge("main", "feature")
			h.repo.DeleteBranch("feature")
		}, holdfast.PullRequestMerged},
		"branch deleted":        {func(h *host) { h.repo.DeleteBranch("feature") }, holdfast.PullRequestClosed},
		"something else merged": {func(h *host) { h.commit("main", "other", "x") }, holdfast.PullRequestOpen},
		"in conflict":           {func(h *host) { h.commit("main", "feature.txt", "x") }, holdfast.PullRequestOpen},
		"tracked branch gone":   {func(h *host) { h.repo.DeleteRef("refs/heads/main") }, holdfast.PullRequestOpen},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.commit("main", "a", "1")
			head := h.branch("feature")
			h.pullRequest(1)
			tt.merge(h)
			pr := h.pullRequest(1)
			if pr.State != tt.state || pr.Head != head {
				t.Fatalf("it is %s at %s, want %s at %s", pr.State, pr.Head, tt.state, head)
			}
			merged := tt.state == holdfast.PullRequestMerged
			if merged != !pr.MergedAt.IsZero() || merged != (pr.MergeCommit != "") {
				t.Errorf("merged at %s as %q", pr.MergedAt, pr.MergeCommit)
			}
			if !merged {
				return
			}
			of, err := h.forge.PullRequestsOf(t.Context(), infra, pr.MergeCommit)
			if err != nil || len(of) != 1 || of[0].Number != 1 {
				t.Errorf("pull requests of the merge: %v, %v", of, err)
			}
			// The branch continues: that is another pull request.
			h.repo.Branch("feature", "main")
			h.commit("feature", "next", "2")
			if next := h.pullRequest(2); next.Branch != "feature" || next.State != holdfast.PullRequestOpen {
				t.Errorf("the next one is %+v", next)
			}
			if pr := h.pullRequest(1); pr.State != holdfast.PullRequestMerged {
				t.Errorf("the first one is %s then", pr.State)
			}
		})
	}
}

func TestCommentsAndStatuses(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	ref := holdfast.PullRequestRef{Repo: infra, Number: 1}
	put := func(id, marker, body string) holdfast.Comment {
		t.Helper()
		c, err := h.forge.PutComment(t.Context(), ref, id, marker, body)
		h.must(err)
		return c
	}
	first := put("", "<!-- m -->", "<!-- m --> one")
	if again := put("", "<!-- m -->", "<!-- m --> two"); again.ID != first.ID || !again.UpdatedAt.After(first.UpdatedAt) {
		t.Errorf("a lost answer makes another comment: %+v", again)
	}
	if again := put(first.ID, "<!-- m -->", "<!-- m --> three"); again.ID != first.ID {
		t.Errorf("an update makes another comment: %+v", again)
	}
	if other := put("", "", "four"); other.ID == first.ID {
		t.Error("a comment without a marker replaces another")
	}
	list, err := h.forge.Comments(t.Context(), infra, time.Time{})
	all := list.Comments
	if err != nil || len(all) != 2 || all[0].Body != "<!-- m --> three" || !all[0].Bot {
		t.Errorf("comments %+v, %v", all, err)
	}
	for _, state := range []holdfast.StatusState{holdfast.StatusPending, holdfast.StatusSuccess} {
		h.must(h.forge.SetStatus(t.Context(), infra, holdfast.CommitStatus{Revision: "r", Context: holdfast.ContextPlan, State: state}))
	}
	statuses, err := h.store.LocalStatuses(t.Context(), infra, "r")
	if err != nil || len(statuses) != 1 || statuses[0].State != holdfast.StatusSuccess {
		t.Errorf("statuses %+v, %v", statuses, err)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := local.New(local.Options{}); err == nil {
		t.Error("a forge without Git")
	}
}

func TestPutIssue(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	put := func(id, marker string, closed bool) holdfast.Issue {
		t.Helper()
		issue, err := h.forge.PutIssue(t.Context(), "demo", id, marker, holdfast.Issue{Title: "Drift", Body: marker, Closed: closed})
		if err != nil {
			t.Fatal(err)
		}
		return issue
	}
	if got := put("", "<!-- a -->", true); got.ID != "" || got.Closed {
		t.Errorf("closed before it was there: %+v", got)
	}
	first := put("", "<!-- a -->", false)
	if again := put("", "<!-- a -->", false); again.ID != first.ID {
		t.Errorf("after a lost answer: %q, want %q", again.ID, first.ID)
	}
	if other := put("", "<!-- b -->", false); other.ID == first.ID {
		t.Errorf("two issues have the id %q", other.ID)
	}
	if got := put(first.ID, "<!-- a -->", true); got.ID != first.ID || !got.Closed {
		t.Errorf("closed: %+v", got)
	}
	if _, err := strconv.Atoi(first.ID); err == nil {
		t.Errorf("%q could be the number of somebody's issue", first.ID)
	}
}

// A merge is a push, and nobody tells of it: whoever looks at the branches once in
// a while sees it late. What is posted in between comes after the merge all the same.
func TestCommentsComeBeforeOrAfterTheMerge(t *testing.T) {
	t.Parallel()
	for name, merge := range map[string]func(h *host){
		"merge":        func(h *host) { h.repo.Merge("main", "feature") },
		"fast-forward": func(h *host) { h.repo.Branch("main", "feature") },
		"squash":       func(h *host) { h.repo.Squash("main", "feature", "one") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.commit("main", "a", "1")
			h.branch("feature")
			ref := h.pullRequest(1).PullRequestRef
			put := func(body string) holdfast.Comment {
				c, err := h.forge.PutComment(t.Context(), ref, "", "<marker>", "<marker>"+body)
				h.must(err)
				return c
			}
			before := put("planned")
			merge(h)
			after := put("planned again") // and nobody has looked at the branches since
			pr := h.pullRequest(1)
			if pr.State != holdfast.PullRequestMerged || !before.UpdatedAt.Before(pr.MergedAt) || !after.UpdatedAt.After(pr.MergedAt) {
				t.Errorf("it is %s at %s; the comments are of %s and %s", pr.State, pr.MergedAt, before.UpdatedAt, after.UpdatedAt)
			}
			if read, err := h.forge.Comment(t.Context(), ref, after.ID); err != nil || !read.UpdatedAt.Equal(after.UpdatedAt) {
				t.Errorf("read back, it is of %s, %v", read.UpdatedAt, err)
			}
			if later := put("planned once more"); !later.UpdatedAt.After(after.UpdatedAt) {
				t.Errorf("a later one is of %s", later.UpdatedAt)
			}
		})
	}
}

// A branch that was squash-merged and left behind does not become a pull request
// when the tracked branch moves on in the same lines.
func TestSquashedBranchIsLeftBehind(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a", "1")
	h.repo.Branch("old", "main")
	h.commit("old", "a", "2")
	h.repo.Squash("main", "old", "two")
	h.commit("main", "a", "3")
	h.commit("main", "b", "1")
	prs, err := h.forge.PullRequests(t.Context(), infra, time.Time{})
	if err != nil || len(prs) != 0 {
		t.Errorf("%+v, %v", prs, err)
	}
	h.commit("main", "a", "4")
	if prs, err = h.forge.PullRequests(t.Context(), infra, time.Time{}); err != nil || len(prs) != 0 {
		t.Errorf("after another commit: %+v, %v", prs, err)
	}
	h.commit("old", "c", "new work") // on the old branch, which conflicts now
	if prs, err = h.forge.PullRequests(t.Context(), infra, time.Time{}); err != nil || len(prs) != 1 || prs[0].State != holdfast.PullRequestOpen {
		t.Errorf("after new work on it: %+v, %v", prs, err)
	}
}

// A pull request that ended long ago is not kept, nor given another number. The branch that
// one has left behind is not a new one, however long ago that was.
func TestPullRequestsThatEndedLongAgo(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a", "1")
	h.branch("gone")
	h.pullRequest(1)
	h.repo.Branch("left", "main")
	h.commit("left", "a", "2")
	h.pullRequest(2)
	h.branch("open")
	h.pullRequest(3)
	h.repo.DeleteBranch("gone")
	h.repo.Squash("main", "left", "two")
	h.pullRequest(2)
	h.commit("main", "a", "3")
	numbers := func() (list []int) {
		t.Helper()
		prs, err := h.forge.PullRequests(t.Context(), infra, time.Time{})
		h.must(err)
		for _, pr := range prs {
			list = append(list, pr.Number)
		}
		return list
	}
	for _, test := range []struct {
		days int
		want []int
	}{{100, []int{3, 2, 1}}, {100, []int{3, 2}}} {
		h.now = h.now.Add(time.Duration(test.days) * 24 * time.Hour)
		numbers() // is when they go
		if diff := cmp.Diff(test.want, numbers()); diff != "" {
			t.Errorf("%d days later there are (-want +got):\n%s", test.days, diff)
		}
	}
	h.branch("next")
	if pr := h.pullRequest(4); pr.Branch != "next" {
		t.Errorf("the next one is %+v", pr)
	}
}

// A squash merge that nobody saw, as the tracked branch has moved on in the same
// lines, is a merge, at the commit that it made.
func TestSquashMergeThatWasNotSeen(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a", "1")
	h.repo.Branch("work", "main")
	h.commit("work", "a", "2")
	if pr := h.pullRequest(1); pr.State != holdfast.PullRequestOpen {
		t.Fatalf("%+v", pr)
	}
	h.commit("main", "b", "1")
	h.pullRequest(1) // not merged up to here
	squashed := holdfast.Revision(h.repo.Squash("main", "work", "two"))
	h.commit("main", "b", "2")
	head := h.commit("main", "a", "3")
	prs, err := h.forge.PullRequestsOf(t.Context(), infra, head)
	if err != nil || len(prs) != 1 || prs[0].State != holdfast.PullRequestMerged || prs[0].MergeCommit != squashed {
		t.Errorf("%+v, %v; want a merge at %s", prs, err, squashed.Short())
	}
}

// Of several merges that come at once each has its own commit, whatever came with it,
// and who asks for those of an older head is told of them as well.
func TestSeveralMergesComeAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a", "1")
	branches := []string{"forward", "one", "squashed", "three"}
	for i, name := range branches {
		h.branch(name)
		h.pullRequest(i + 1)
	}
	want := make(map[string]holdfast.Revision)
	want["forward"] = holdfast.Revision(h.repo.Rev("forward"))
	h.repo.Branch("main", "forward")
	want["one"] = holdfast.Revision(h.repo.Merge("main", "one"))
	h.commit("main", "b", "1")
	want["squashed"] = holdfast.Revision(h.repo.Squash("main", "squashed", "two"))
	taken := h.commit("main", "b", "2")
	want["three"] = holdfast.Revision(h.repo.Merge("main", "three"))
	h.commit("main", "b", "3")
	prs, err := h.forge.PullRequestsOf(t.Context(), infra, taken) // the branch has moved on from it
	h.must(err)
	got := make(map[string]holdfast.Revision)
	for _, pr := range prs {
		got[pr.Branch] = pr.MergeCommit
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("they are merged at (-want +got):\n%s", diff)
	}
}

// A branch that another repository at the same place tracks is not a pull request.
func TestTrackedBranchesAreNotPullRequests(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a", "1")
	h.branch("release")
	h.branch("feature")
	forge, err := local.New(local.Options{
		Git: h.git, Store: h.store, Branches: map[string]string{infra: "main"}, Others: map[string][]string{infra: {"release"}},
	})
	h.must(err)
	prs, err := forge.PullRequests(t.Context(), infra, time.Time{})
	if err != nil || len(prs) != 1 || prs[0].Branch != "feature" {
		t.Errorf("%+v, %v; want that of the branch that nobody tracks", prs, err)
	}
}

// A branch that continues from what another repository at the same place tracks is a
// pull request of that one alone.
func TestBranchContinuesFromAnotherTrackedOne(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a", "1")
	h.branch("release")
	h.branch("between") // it continues from both
	h.commit("between", "d", "1")
	h.commit("main", "b", "1")
	h.commit("release", "c", "1")
	h.repo.Branch("fix", "release")
	h.commit("fix", "c", "2")
	h.commit("release", "e", "1") // it has moved on since
	forge, err := local.New(local.Options{
		Git: h.git, Store: h.store, Branches: map[string]string{infra: "main"}, Others: map[string][]string{infra: {"release"}},
	})
	h.must(err)
	prs, err := forge.PullRequests(t.Context(), infra, time.Time{})
	if err != nil || len(prs) != 1 || prs[0].Branch != "between" {
		t.Errorf("%+v, %v; want that of the branch that does not come from release alone", prs, err)
	}
}

// A branch that nobody can read is a pull request of its own trouble: the others are seen,
// and so are their merges.
func TestUnreadableBranch(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a.txt", "1")
	h.branch("one")
	if got := h.pullRequest(1); got.Branch != "one" {
		t.Fatalf("the first pull request is of %q", got.Branch)
	}
	h.repo.SetRef("refs/heads/evil", h.repo.Malformed("main"))
	h.commit("main", "b.txt", "1") // what compares them has to read the trees
	h.branch("two")
	prs, err := h.forge.PullRequests(t.Context(), infra, time.Time{})
	h.must(err)
	var branches []string
	for _, pr := range prs {
		branches = append(branches, pr.Branch)
	}
	slices.Sort(branches)
	if want := []string{"evil", "one", "two"}; !slices.Equal(branches, want) {
		t.Errorf("pull requests of %q, want %q", branches, want)
	}
	h.repo.Merge("main", "one")
	if got := h.pullRequest(1); got.State != holdfast.PullRequestMerged {
		t.Errorf("the first is %s after its merge", got.State)
	}
}

// A branch stays the pull request that it is when what the forge has stored of that can no
// longer be read, as long as there is a record of it; its merge is seen as well.
func TestADamagedPullRequestStaysTheSame(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a", "1")
	h.branch("feature")
	_, err := h.store.SavePullRequest(t.Context(), holdfast.PullRequestRecord{PullRequest: h.pullRequest(1)})
	h.must(err)
	db, err := sql.Open("sqlite", h.path)
	h.must(err)
	defer db.Close()
	only := func(head holdfast.Revision, state holdfast.PullRequestState) {
		t.Helper()
		_, err := db.Exec(`UPDATE local_pull_requests SET doc = x'00'`)
		h.must(err)
		prs, err := h.forge.PullRequests(t.Context(), infra, time.Time{})
		h.must(err)
		if len(prs) != 1 || prs[0].Number != 1 || prs[0].Branch != "feature" || prs[0].Head != head || prs[0].State != state {
			t.Errorf("pull requests are %+v", prs)
		}
	}
	head := h.commit("feature", "b", "2")
	only(head, holdfast.PullRequestOpen)
	h.repo.Merge("main", "feature")
	only(head, holdfast.PullRequestMerged)
}
