package intake

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// What an earlier version has recorded is what this one would, unless another environment
// may have made another state of it.
func TestWhatAnEarlierVersionHasRecorded(t *testing.T) {
	t.Parallel()
	of := func(environment string) holdfast.Cluster {
		return holdfast.Cluster{Name: "a", Project: "p", Environment: environment}
	}
	res := &catalog.Resolution{
		Doc:    document.Document{Cluster: of("e")},
		Digest: "sha256:digest", Others: []holdfast.Digest{"sha256:code", "sha256:bound"}, Location: "pg:conn_str=of p/e,schema_name=s",
	}
	to := holdfast.Desired{SourceDigest: res.Digest, StateLocation: res.Location, Document: res.Doc.Cluster}
	for name, c := range map[string]struct{ was, want holdfast.Applied }{
		"as now":         {holdfast.Applied{SourceDigest: res.Digest, StateLocation: res.Location}, holdfast.Applied{SourceDigest: res.Digest, StateLocation: res.Location}},
		"another name":   {holdfast.Applied{SourceDigest: res.Digest, StateLocation: "pg:a"}, holdfast.Applied{SourceDigest: res.Digest, StateLocation: res.Location}},
		"the code alone": {holdfast.Applied{SourceDigest: "sha256:code", StateLocation: "pg:a"}, holdfast.Applied{SourceDigest: res.Digest, StateLocation: res.Location}},
		"bound as well":  {holdfast.Applied{SourceDigest: "sha256:bound", StateLocation: "pg:a"}, holdfast.Applied{SourceDigest: res.Digest, StateLocation: res.Location}},
		"other code":     {holdfast.Applied{SourceDigest: "sha256:other", StateLocation: "pg:a"}, holdfast.Applied{SourceDigest: "sha256:other", StateLocation: "pg:a"}},
	} {
		for _, applied := range []*holdfast.Applied{&c.was, &c.want} {
			applied.InputDigest, applied.Bundle, applied.Document = "sha256:input", "sha256:bundle", of("e")
		}
		if diff := cmp.Diff(c.want, asResolved(c.was, res, to)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	moved := holdfast.Applied{SourceDigest: "sha256:code", StateLocation: "pg:a", Document: of("f"), InputDigest: "sha256:input", Bundle: "sha256:bundle"}
	if diff := cmp.Diff(moved, asResolved(moved, res, to)); diff != "" {
		t.Errorf("of another environment (-want +got):\n%s", diff)
	}
}
