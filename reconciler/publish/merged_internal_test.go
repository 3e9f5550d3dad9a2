package publish

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// A cluster of another repository was given to that only if this one had it: a document that
// was at fault never did.
func TestDisplacedByATransfer(t *testing.T) {
	t.Parallel()
	rec := holdfast.ClusterRecord{Name: "prod", Owner: "acme/other"}
	pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: ref}}
	for digest, want := range map[holdfast.Digest]string{"sha256:1": "its transfer to acme/other", "": ""} {
		rc := report.Cluster{Name: "prod"}
		got, err := (&viewer{}).displaced(t.Context(), &rc, rec, pr, holdfast.PullRequestCluster{Name: "prod", SourceDigest: digest})
		if got != want || err != nil {
			t.Errorf("with the digest %q it is displaced by %q, %v; want %q", digest, got, err, want)
		}
	}
}
