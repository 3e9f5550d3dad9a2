package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A mistake in one document of a file of several is a fault at its line, in a pull
// request, on the branch and at a start. The cluster is not taken for removed.
func TestSpoiledDocumentsRemoveNothing(t *testing.T) {
	t.Parallel()
	prod, preprod := document("prod"), document("preprod")
	replaced := func(old, replacement string) string {
		return strings.Replace(prod, old, replacement, 1) + "---\n" + preprod
	}
	for name, tc := range map[string]struct {
		text, fault string
		waiting     holdfast.Reason
	}{
		"key kinnd":        {replaced("kind:", "kinnd:"), `clusters/prod.yaml:2:1: unknown key "kinnd"`, holdfast.ReasonInvalid},
		"no kind":          {replaced("kind: Cluster\n", ""), `clusters/prod.yaml:1:1: kind is missing`, holdfast.ReasonInvalid},
		"no apiVersion":    {replaced("apiVersion: holdfast.dev/v1\n", ""), `clusters/prod.yaml:1:1: apiVersion is missing`, holdfast.ReasonInvalid},
		"another domain":   {replaced("holdfast.dev", "holdfast.com"), `clusters/prod.yaml:1:13: apiVersion is "holdfast.com/v1"`, holdfast.ReasonInvalid},
		"list":             {"- " + strings.ReplaceAll(strings.TrimSpace(prod), "\n", "\n  ") + "\n---\n" + preprod, `clusters/prod.yaml:1:3: a document of ours is an item of a list`, holdfast.ReasonInvalid},
		"ran into another": {preprod + "# ---\n" + prod, `key "apiVersion" is there twice`, holdfast.ReasonMissing},
		"somebody else's":  {replaced("apiVersion: holdfast.dev/v1\nkind: Cluster", "apiVersion: v1\nkind: ConfigMap"), `clusters/prod.yaml:1 has its name, in a document that is not a cluster`, holdfast.ReasonMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			delete(files, "clusters/preprod.yaml")
			files["clusters/prod.yaml"] = prod + "---\n" + preprod
			f := newFleet(t, files)
			f.adopt()
			spoiled := map[string]string{"clusters/prod.yaml": tc.text}
			f.open(1, spoiled)
			if rec := f.pullRequest(1); !strings.Contains(rec.Faults.Error(), tc.fault) {
				t.Errorf("faults are %v", rec.Faults)
			}
			check := func(when string) {
				t.Helper()
				rec := f.cluster("prod")
				if rec.Desired.Removed || rec.Waiting != tc.waiting {
					t.Errorf("%s: removed is %t, it waits for %q: %s", when, rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
				}
				f.expectRuns("prod", "plan no_changes")
			}
			f.repo.Commit(master, "spoil", spoiled)
			f.look()
			check("on the branch")
			f.restart()
			f.look()
			check("after a restart")
			f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": preprod})
			f.look()
			if !f.cluster("prod").Desired.Removed {
				t.Error("its document is gone, and it is not removed")
			}
		})
	}
}

// Whoever changes a document is told of the faults that it has, also of those that
// it had before.
func TestFaultOfATouchedDocumentIsTold(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/lost.yaml"] = document("lost")
	f := newFleet(t, files)
	f.look()
	f.open(1, map[string]string{"clusters/lost.yaml": document("lost", "region: eu")})
	if rec := f.pullRequest(1); len(rec.Faults) != 1 || !strings.Contains(rec.Faults.Error(), "clusters/lost.yaml:7:18") {
		t.Errorf("faults are %v", rec.Faults)
	}
	f.open(3, map[string]string{"clusters/prod.yaml": document("prod", "region: eu")})
	if rec := f.pullRequest(3); len(rec.Faults) > 0 {
		t.Errorf("it is blamed for %v", rec.Faults)
	}
}
