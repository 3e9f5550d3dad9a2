package kept_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/kept"
)

// An unknown digest equals nothing, by its Equal method; as a value it does.
var digests = cmp.Comparer(func(a, b holdfast.Digest) bool { return a == b })

func number(n int) holdfast.PullRequestRef {
	return holdfast.PullRequestRef{Repo: "fleet", Number: n}
}

func titled(title string) (record holdfast.PullRequestRecord) {
	record.Title = title
	return record
}

// What is used stays, whatever comes and goes; all of it stays within the bound.
func TestRecordsStayWithinTheirBound(t *testing.T) {
	t.Parallel()
	const size = kept.MaxBytes / 16
	var records kept.PullRequests
	if mark, _ := records.Last(number(0)); mark != "" {
		t.Errorf("of nothing there is one with the mark %q", mark)
	}
	records.Keep(number(0), "zero", titled("in use"), size)
	for n := 1; n <= 100; n++ {
		records.Keep(number(n), "mark", titled("another"), size)
		if mark, record := records.Last(number(0)); mark != "zero" || record.Title != "in use" {
			t.Fatalf("after %d others the one in use is %q with the mark %q", n, record.Title, mark)
		}
	}
	left := 0
	for n := 1; n <= 100; n++ {
		if mark, _ := records.Last(number(n)); mark != "" {
			left++
		}
	}
	if left == 0 || left > 15 {
		t.Errorf("%d others are kept, want some and at most 15", left)
	}
}

// A record is replaced by its next one, also by one that is too large to be kept.
func TestRecordsAreReplaced(t *testing.T) {
	t.Parallel()
	var records kept.PullRequests
	records.Keep(number(1), "first", titled("first"), 10)
	records.Keep(number(1), "second", titled("second"), 10)
	if mark, record := records.Last(number(1)); mark != "second" || record.Title != "second" {
		t.Errorf("the next one is %q with the mark %q", record.Title, mark)
	}
	records.Keep(number(1), "third", titled("third"), kept.MaxBytes)
	if mark, record := records.Last(number(1)); mark != "" {
		t.Errorf("after one that is too large there is %q with the mark %q", record.Title, mark)
	}
	for range 1000 { // of the same one: that takes the room of one
		records.Keep(number(2), "mark", titled("again"), kept.MaxBytes/4)
	}
	records.Keep(number(3), "mark", titled("another"), kept.MaxBytes/4)
	if mark, _ := records.Last(number(2)); mark == "" {
		t.Error("one that was replaced many times is gone")
	}
}

// Whoever has a record changes it for nobody else: neither who has kept it, nor who gets it
// before or after.
func TestRecordsAreCopied(t *testing.T) {
	t.Parallel()
	record := func() (r holdfast.PullRequestRecord) {
		r.Clusters = append(make([]holdfast.PullRequestCluster, 0, 8), holdfast.PullRequestCluster{Name: "prod"})
		r.Clusters[0].Document.DependsOn = append(make([]string, 0, 8), "network")
		r.Approvals = append(make([]holdfast.Approval, 0, 8), holdfast.Approval{By: "ann", Runs: append(make([]string, 0, 8), "run-1")})
		r.Faults = append(make(holdfast.Faults, 0, 8), holdfast.Fault{Message: "wrong"})
		r.Verdicts = append(make([]holdfast.Verdict, 0, 8), holdfast.Verdict{By: "ann"})
		r.Settings = append(make([]string, 0, 8), "a setting")
		return r
	}
	var records kept.PullRequests
	mine := record()
	records.Keep(number(1), "mark", mine, 10)
	_, other := records.Last(number(1))
	change := func(r holdfast.PullRequestRecord, name string) holdfast.PullRequestRecord {
		r.Clusters[0].Name, r.Approvals[0].Ended, r.Faults[0].Message, r.Verdicts[0].By, r.Settings[0] = name, name, name, name, name
		r.Clusters[0].Document.DependsOn = append(r.Clusters[0].Document.DependsOn, name)
		r.Approvals[0].Runs = append(r.Approvals[0].Runs, name)
		r.Clusters = append(r.Clusters, holdfast.PullRequestCluster{Name: name})
		return r
	}
	changed := change(other, "theirs")
	change(mine, "mine")
	_, last := records.Last(number(1))
	if diff := cmp.Diff(record(), last, digests); diff != "" {
		t.Errorf("it has changed for others (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(change(record(), "theirs"), changed, digests); diff != "" {
		t.Errorf("a copy has changed with another one (-want +got):\n%s", diff)
	}
}
