package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// postCheckRun and patchCheckRun are the calls that write a check run.
const (
	postCheckRun  = "POST /repos/{owner}/{repo}/check-runs"
	patchCheckRun = "PATCH /repos/{owner}/{repo}/check-runs/{id}"
)

func documents(state holdfast.StatusState) holdfast.CommitStatus {
	return holdfast.CommitStatus{Revision: head, Context: holdfast.ContextFaults, State: state, Description: "errors", URL: "https://holdfast.example.com"}
}

func manyFaults(n int) (faults holdfast.Faults) {
	for i := range n {
		faults = append(faults, holdfast.Fault{File: "clusters/a.yaml", Line: i + 1, Column: 3, Message: fmt.Sprintf("fault %d", i), Hint: "mend it"})
	}
	return faults
}

// TestPutCheck: faults are annotations at their lines, fifty in a call, once each,
// also when an answer on the way is lost; other ones come with another check run.
func TestPutCheck(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	repo := s.Repo("acme/app")
	repo.Knows(head)
	c := newClient(t, s, github.Options{Identity: github.Identity{App: &github.App{ID: githubserver.AppID, PrivateKey: s.AppKey()}}})
	faults := append(manyFaults(119), holdfast.Fault{File: "clusters/b.yaml", Message: "is empty", Cluster: "b"})
	put := func(state holdfast.StatusState, faults holdfast.Faults) error {
		return c.PutCheck(t.Context(), "app", documents(state), faults)
	}

	s.Fail(1, patchCheckRun, githubserver.Fault{Status: http.StatusBadGateway, After: true})
	if err := put(holdfast.StatusFailure, faults); err == nil {
		t.Fatal("a lost answer is not an error")
	}
	if run := repo.CheckRuns(head)[0]; run.Status != "in_progress" || len(run.Annotations) != 100 {
		t.Errorf("half-way the check run is %s with %d annotations", run.Status, len(run.Annotations))
	}
	for range 2 {
		if err := put(holdfast.StatusFailure, faults); err != nil {
			t.Fatal(err)
		}
	}
	runs := repo.CheckRuns(head)
	if len(runs) != 1 || runs[0].Name != holdfast.ContextFaults || runs[0].Status != "completed" || runs[0].Conclusion != "failure" || len(runs[0].Annotations) != 120 {
		t.Fatalf("check runs: %d, the first %s %s %s with %d annotations", len(runs), runs[0].Name, runs[0].Status, runs[0].Conclusion, len(runs[0].Annotations))
	}
	if calls := s.Calls(); calls[postCheckRun] != 1 || calls[patchCheckRun] != 2 {
		t.Errorf("calls: %d to make, %d to change; want 1 and 2", calls[postCheckRun], calls[patchCheckRun])
	}
	want := []githubserver.Annotation{
		{Path: "clusters/a.yaml", StartLine: 119, EndLine: 119, StartColumn: 3, EndColumn: 3, Level: "failure", Message: "fault 118\nmend it"},
		{Path: "clusters/b.yaml", StartLine: 1, EndLine: 1, Level: "failure", Message: "is empty\nCluster: b"},
	}
	if diff := cmp.Diff(want, runs[0].Annotations[118:]); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}

	if err := put(holdfast.StatusSuccess, nil); err != nil {
		t.Fatal(err)
	}
	if runs = repo.CheckRuns(head); len(runs) != 2 || runs[1].Conclusion != "success" || len(runs[1].Annotations) != 0 {
		t.Errorf("mended, the check runs are %+v", runs[1:])
	}
}

// TestPutCheckWithoutPermission: for an App that may not GitHub is asked once in an hour,
// which the error says, and for a token never.
func TestPutCheckWithoutPermission(t *testing.T) {
	t.Parallel()
	s := githubserver.New(t)
	repo := s.Repo("acme/app")
	repo.Knows(head)
	now := time.Now()
	s.SetNow(func() time.Time { return now })
	s.SetPermissions(map[string]string{"metadata": "read", "statuses": "write"})
	c := newClient(t, s, github.Options{
		Identity: github.Identity{App: &github.App{ID: githubserver.AppID, PrivateKey: s.AppKey()}}, Now: func() time.Time { return now },
	})
	for i, faults := range []holdfast.Faults{manyFaults(1), manyFaults(2), manyFaults(3)} {
		err := c.PutCheck(t.Context(), "app", documents(holdfast.StatusFailure), faults)
		limited := (*holdfast.RateLimitError)(nil)
		if !errors.As(err, &limited) || !limited.RetryAt.Equal(now.Add(time.Hour)) || !strings.Contains(err.Error(), "checks: write; tried again at ") {
			t.Errorf("try %d: %v", i, err)
		}
	}
	list := "GET /repos/{owner}/{repo}/commits/{sha}/check-runs"
	if calls := s.Calls(); calls[list] != 1 || calls[postCheckRun] != 0 {
		t.Errorf("without the permission there are %d and %d calls, want 1 and none", calls[list], calls[postCheckRun])
	}
	s.SetPermissions(map[string]string{"metadata": "read", "checks": "write"})
	now = now.Add(time.Hour)
	if err := c.PutCheck(t.Context(), "app", documents(holdfast.StatusFailure), manyFaults(1)); err != nil || len(repo.CheckRuns(head)) != 1 {
		t.Errorf("with the permission there are %d check runs: %v", len(repo.CheckRuns(head)), err)
	}

	byToken := newClient(t, s, github.Options{Identity: github.Identity{Token: token}})
	s.ResetCalls()
	if err := byToken.PutCheck(t.Context(), "app", documents(holdfast.StatusFailure), manyFaults(1)); err != nil || s.CallCount() != 0 {
		t.Errorf("with a token there are %d calls: %v", s.CallCount(), err)
	}
}
