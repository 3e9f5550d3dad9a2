package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// plan is what was shown at noon; again did the same and was shown a minute later.
var (
	plan  = holdfast.Run{ID: "run-1", RunSpec: holdfast.RunSpec{Revision: "head"}, RunOutcome: holdfast.RunOutcome{Fingerprint: "sha256:1", PostedAt: noon}}
	again = holdfast.Run{ID: "run-2", RunSpec: holdfast.RunSpec{Revision: "head"}, RunOutcome: holdfast.RunOutcome{Fingerprint: "sha256:1", PostedAt: noon.Add(time.Minute)}}
	later = holdfast.Run{ID: "run-1", RunSpec: holdfast.RunSpec{Revision: "head"}, RunOutcome: holdfast.RunOutcome{Fingerprint: "sha256:3", PostedAt: noon.Add(time.Hour)}}
	other = holdfast.Run{ID: "run-3", RunSpec: holdfast.RunSpec{Revision: "head"}, RunOutcome: holdfast.RunOutcome{Fingerprint: "sha256:2", PostedAt: noon.Add(time.Minute)}}
)

func proposal(change func(*holdfast.PullRequestRecord)) holdfast.PullRequestRecord {
	pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: 7},
		Author:         "dev", Head: "head", State: holdfast.PullRequestMerged, MergedAt: noon.Add(time.Hour),
	}}
	if change != nil {
		change(&pr)
	}
	return pr
}

func verdicts(all ...holdfast.Verdict) holdfast.PullRequestRecord {
	return proposal(func(pr *holdfast.PullRequestRecord) { pr.Verdicts = all })
}

func approvals(all ...holdfast.Approval) holdfast.PullRequestRecord {
	return proposal(func(pr *holdfast.PullRequestRecord) { pr.Approvals = all })
}

func shownSince(pr holdfast.PullRequestRecord, at time.Time) holdfast.PullRequestRecord {
	pr.ShownSince = at
	return pr
}

func TestApproved(t *testing.T) {
	t.Parallel()
	by := func(at time.Time, head holdfast.Revision) holdfast.Verdict {
		return holdfast.Verdict{By: "lead", Approves: true, Head: head, At: at}
	}
	asks := holdfast.Verdict{By: "boss", Head: "old", At: noon}
	of := func(runs ...string) holdfast.Approval {
		return holdfast.Approval{By: "lead", Head: "head", At: noon.Add(time.Minute), Runs: runs, CommentID: "1"}
	}
	ended := of("run-1")
	ended.Ended = "its comment was deleted"
	mine, others := of("run-1"), of("run-1")
	mine.Clusters, others.Clusters = []string{"preprod", "prod"}, []string{"preprod"}
	objected := approvals(of("run-1"))
	objected.Verdicts = []holdfast.Verdict{asks}
	tests := map[string]struct {
		pr      holdfast.PullRequestRecord
		plan    holdfast.Run
		given   string
		missing string // empty: it is met
	}{
		"nothing":                            {proposal(nil), plan, "", "nobody has approved it"},
		"reviewed after it was shown":        {verdicts(by(noon.Add(time.Second), "head")), plan, "lead approved in a review", ""},
		"reviewed in the same second":        {verdicts(by(noon, "head")), plan, "", "lead approved before this plan was shown"},
		"reviewed before":                    {verdicts(by(noon.Add(-time.Minute), "head")), plan, "", "before this plan was shown"},
		"reviewed an older commit":           {verdicts(by(noon.Add(time.Minute), "old")), plan, "", "lead approved an older commit"},
		"reviewed one that did the same":     {verdicts(by(noon.Add(time.Second), "head")), again, "lead approved in a review", ""},
		"reviewed one that did another":      {verdicts(by(noon.Add(time.Second), "head")), other, "", "before this plan was shown"},
		"reviewed, and nothing was planned":  {verdicts(by(noon.Add(time.Second), "head")), holdfast.Run{}, "", "before this plan was shown"},
		"changes requested":                  {verdicts(by(noon.Add(time.Second), "head"), asks), plan, "lead approved in a review", "boss requested changes"},
		"changes requested, and a command":   {objected, plan, "lead approved by command", "boss requested changes"},
		"by command":                         {approvals(of("run-1")), plan, "lead approved by command", ""},
		"by command, planned again":          {approvals(of("run-1")), again, "lead approved by command", ""},
		"by command, of another plan":        {approvals(of("run-1")), other, "", "before this plan was shown"},
		"by command, shown again since":      {approvals(of("run-1")), later, "", "before this plan was shown"},
		"by command, of an edited comment":   {shownSince(approvals(of("run-1")), noon.Add(time.Hour)), plan, "", "before this plan was shown"},
		"reviewed an edited comment":         {shownSince(verdicts(by(noon.Add(time.Second), "head")), noon.Add(time.Second)), plan, "", "before this plan was shown"},
		"reviewed it when it was back":       {shownSince(verdicts(by(noon.Add(time.Minute), "head")), noon.Add(time.Second)), plan, "lead approved in a review", ""},
		"by command, of nothing":             {approvals(of()), plan, "", "before this plan was shown"},
		"by command, for it":                 {approvals(mine), plan, "lead approved by command", ""},
		"by command, for others":             {approvals(others), plan, "", "lead approved other clusters"},
		"by command, ended":                  {approvals(ended), plan, "", "the approval of lead ended: its comment was deleted"},
		"by command, ended, and given again": {approvals(ended, of("run-1")), plan, "lead approved by command", ""},
		"by command, of an older commit":     {approvals(holdfast.Approval{By: "lead", Head: "old", Runs: []string{"run-1"}}), plan, "", "an older commit"},
		"from before runs were recorded":     {approvals(holdfast.Approval{By: "lead", Head: "head", At: noon.Add(time.Hour)}), plan, "lead approved by command", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gates := gate.Of(tt.pr, gate.Terms{Cluster: "prod", Requires: []string{"approved", "approved"}}, tt.plan, []holdfast.Run{again, other, plan})
			if len(gates) != 1 {
				t.Fatalf("got %+v, want one", gates)
			}
			g := gates[0]
			if g.Met != (tt.missing == "") || !strings.Contains(g.Missing, tt.missing) || (g.From != "") == g.Met {
				t.Errorf("got %+v, want it to miss %q", g, tt.missing)
			}
			if diff := cmp.Diff(tt.given, strings.Join(g.Given, ", ")); diff != "" {
				t.Errorf("given (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeable(t *testing.T) {
	t.Parallel()
	after := holdfast.Approval{By: "lead", Head: "head", At: noon.Add(2 * time.Hour)}
	tests := map[string]struct {
		change  func(*holdfast.PullRequestRecord)
		missing string
	}{
		"it said so":        {func(pr *holdfast.PullRequestRecord) { pr.Mergeable = true }, ""},
		"it said nothing":   {nil, "did not report before the merge"},
		"it said no":        {func(pr *holdfast.PullRequestRecord) { pr.Blocked = "dirty" }, `"dirty"`},
		"open, not yet":     {func(pr *holdfast.PullRequestRecord) { pr.State = holdfast.PullRequestOpen }, "not reported yet"},
		"open, and blocked": {func(pr *holdfast.PullRequestRecord) { pr.State, pr.Blocked = holdfast.PullRequestOpen, "behind" }, `"behind"`},
		"approved before":   {func(pr *holdfast.PullRequestRecord) { a := after; a.At = noon; pr.Approvals = append(pr.Approvals, a) }, "did not report"},
		"approved after":    {func(pr *holdfast.PullRequestRecord) { pr.Approvals = append(pr.Approvals, after) }, ""},
		"approved after, for it": {func(pr *holdfast.PullRequestRecord) {
			a := after
			a.Clusters = []string{"prod"}
			pr.Approvals = append(pr.Approvals, a)
		}, ""},
		"approved after, for others": {func(pr *holdfast.PullRequestRecord) {
			a := after
			a.Clusters = []string{"preprod"}
			pr.Approvals = append(pr.Approvals, a)
		}, "did not report"},
		"approved after, ended": {func(pr *holdfast.PullRequestRecord) {
			a := after
			a.Ended = "x"
			pr.Approvals = append(pr.Approvals, a)
		}, "did not report"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gate.Of(proposal(tt.change), gate.Terms{Cluster: "prod", Requires: []string{"mergeable"}}, holdfast.Run{}, nil)[0]
			if g.Met != (tt.missing == "") || !strings.Contains(g.Missing, tt.missing) || (g.From != "") == g.Met {
				t.Errorf("got %+v, want it to miss %q", g, tt.missing)
			}
		})
	}
}

// host is a forge with one comment.
type host struct {
	comment    holdfast.Comment
	deleted    error
	unread     error
	permission holdfast.Permission
	verdicts   []holdfast.Verdict
	asked      int
}

func (h *host) PullRequest(context.Context, holdfast.PullRequestRef) (holdfast.PullRequest, error) {
	return holdfast.PullRequest{Verdicts: h.verdicts}, nil
}

func (h *host) Permission(context.Context, string, string) (holdfast.Permission, error) {
	return h.permission, nil
}

func (h *host) Comment(context.Context, holdfast.PullRequestRef, string) (holdfast.Comment, error) {
	h.asked++
	return h.comment, h.deleted
}

func TestStanding(t *testing.T) {
	t.Parallel()
	now := noon.Add(time.Hour)
	h := &host{permission: holdfast.PermissionWrite, comment: holdfast.Comment{CreatedAt: noon, UpdatedAt: noon}}
	intact := true
	look := func(context.Context, holdfast.PullRequest, holdfast.PullRequestState) (bool, error) {
		return intact, h.unread
	}
	k := gate.NewKeeper(func(string) gate.Forge { return h }, look, func() time.Time { return now })
	pr := approvals(holdfast.Approval{By: "lead", Head: "head", At: noon, Said: noon, CommentID: "1", Runs: []string{"run-1"}})
	standing := func() (holdfast.PullRequestRecord, error) {
		if known, ok := k.Standing(pr); ok {
			return known, nil
		}
		return k.Fresh(t.Context(), pr)
	}
	ended := func() string {
		t.Helper()
		now = now.Add(time.Minute)
		got, err := standing()
		if err != nil {
			t.Fatal(err)
		}
		return got.Approvals[0].Ended
	}
	if got := ended(); got != "" {
		t.Errorf("it ended: %s", got)
	}
	if _, err := standing(); err != nil || h.asked != 1 {
		t.Errorf("the forge was asked %d times, want once in ten seconds, %v", h.asked, err)
	}
	now, intact = now.Add(time.Minute), false
	if got, err := standing(); err != nil || !got.ShownSince.After(now) {
		t.Errorf("an edited comment counts as shown since %s, %v", got.ShownSince, err)
	}
	now, h.unread = now.Add(time.Minute), errors.New("no answer")
	if _, err := standing(); !errors.Is(err, h.unread) {
		t.Errorf("a comment that cannot be read: %v", err)
	}
	intact, h.unread = true, nil
	h.comment.UpdatedAt = noon.Add(time.Second)
	if got := ended(); !strings.Contains(got, "edited") {
		t.Errorf("of an edited comment it is %q", got)
	}
	h.comment.UpdatedAt, h.permission = noon, holdfast.PermissionRead
	if got := ended(); !strings.Contains(got, "permission") {
		t.Errorf("of somebody who may only read it is %q", got)
	}
	h.deleted = holdfast.ErrNotFound
	if got := ended(); !strings.Contains(got, "deleted") {
		t.Errorf("of a deleted comment it is %q", got)
	}
	h.deleted = holdfast.ErrUnavailable
	now = now.Add(time.Minute)
	if _, err := standing(); err == nil {
		t.Error("a forge that does not answer ends nothing, and lets nothing pass")
	}
	if pr.Approvals[0].Ended != "" {
		t.Error("the record that was given has changed")
	}
}
