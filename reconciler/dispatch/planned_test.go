package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/plandoc"
)

// artefacts is a Store of which only artefacts are asked for.
type artefacts struct {
	Store
	files map[string][]byte
}

func (a artefacts) Artefact(_ context.Context, _, name string) (io.ReadCloser, error) {
	data, ok := a.files[name]
	if !ok {
		return nil, holdfast.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (a artefacts) PutArtefact(_ context.Context, _ holdfast.AttemptRef, name string, data io.Reader) error {
	all, err := io.ReadAll(data)
	a.files[name] = all
	return err
}

// TestTakePlan: what an attempt has planned is what its document says, whatever
// else it has left or said.
func TestTakePlan(t *testing.T) {
	t.Parallel()
	document, info, digest, err := plandoc.Artefacts(holdfast.Plan{Counts: holdfast.Counts{Delete: 3}})
	if err != nil {
		t.Fatal(err)
	}
	other, _, otherDigest, err := plandoc.Artefacts(holdfast.Plan{Counts: holdfast.Counts{Update: 1}})
	if err != nil {
		t.Fatal(err)
	}
	empty, _, emptyDigest, err := plandoc.Artefacts(holdfast.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		document, info []byte
		result         holdfast.Result
		want           holdfast.RunStatus
		deletes        int
		why            string
	}{
		"planned":                {document, info, holdfast.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunPlanned, 3, ""},
		"applied":                {document, info, holdfast.Result{Status: holdfast.RunApplied, PlanDigest: digest}, holdfast.RunApplied, 3, ""},
		"failed after it":        {document, info, holdfast.Result{Status: holdfast.RunErrored, PlanDigest: digest}, holdfast.RunErrored, 3, ""},
		"failed before it":       {nil, nil, holdfast.Result{Status: holdfast.RunErrored}, holdfast.RunErrored, 0, ""},
		"nothing to do":          {empty, info, holdfast.Result{Status: holdfast.RunNoChanges, PlanDigest: emptyDigest}, holdfast.RunNoChanges, 0, ""},
		"another document":       {other, info, holdfast.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "the result is of"},
		"another digest":         {document, info, holdfast.Result{Status: holdfast.RunPlanned, PlanDigest: otherDigest}, holdfast.RunErrored, 0, "the result is of"},
		"no digest":              {document, info, holdfast.Result{Status: holdfast.RunPlanned}, holdfast.RunErrored, 0, "the result is of"},
		"no document":            {nil, info, holdfast.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "left no plan document"},
		"no information":         {document, nil, holdfast.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "cannot be read"},
		"not a document":         {[]byte("{}"), info, holdfast.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "version 0"},
		"information of nothing": {document, []byte(`{"drift":[{}]}`), holdfast.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "drift"},
		"said to be nothing":     {document, info, holdfast.Result{Status: holdfast.RunNoChanges, PlanDigest: digest}, holdfast.RunErrored, 0, "without changes"},
		"applied nothing":        {empty, info, holdfast.Result{Status: holdfast.RunApplied, PlanDigest: emptyDigest}, holdfast.RunErrored, 0, "no changes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// What a former version's agent, or somebody with the attempt's token, has
			// left under the name of what people are shown.
			store := artefacts{files: map[string][]byte{holdfast.ArtefactPlan: []byte(`{"counts":{"update":1}}`)}}
			if test.document != nil {
				store.files[holdfast.ArtefactDocument] = test.document
			}
			if test.info != nil {
				store.files[holdfast.ArtefactInfo] = test.info
			}
			d := results{store: store}
			test.result.Matched, test.result.Applying = "run-1", test.want == holdfast.RunApplied
			plan, result, err := d.recordPlan(t.Context(), holdfast.AttemptRef{Run: "run-2", Attempt: 1}, test.result)
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != test.want || plan.Counts.Delete != test.deletes {
				t.Fatalf("it ended %s with %+v: %+v", result.Status, plan.Counts, result.Failure)
			}
			if test.why != "" && (result.Failure == nil || !strings.Contains(result.Failure.Summary, test.why) || result.Matched != "") {
				t.Errorf("failure %+v, matched %q", result.Failure, result.Matched)
			}
			if test.why == "" && test.result.PlanDigest != "" {
				var kept holdfast.Plan
				if err := json.Unmarshal(store.files[holdfast.ArtefactPlan], &kept); err != nil || kept.Digest != test.result.PlanDigest || kept.Counts != plan.Counts {
					t.Errorf("people are shown %+v (%v)", kept, err)
				}
			}
		})
	}
}
