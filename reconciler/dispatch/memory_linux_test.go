//go:build !race

package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/peak"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
)

const (
	memoryFile = "HOLDFAST_TEST_DOCUMENT" // in the environment: the document that this process takes in
	mostMemory = 200 << 20
)

// TestLargeDocumentTakesLittleMemory: a plan that updates 2,000 resources, of 8 kB
// before and 8 kB after, costs the server less than 200 MB. A process of its own takes
// it in, so that the kernel's count of the most memory that it ever had is of nothing
// else.
func TestLargeDocumentTakesLittleMemory(t *testing.T) {
	if file := os.Getenv(memoryFile); file != "" {
		takeLarge(t, file)
		return
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "document.json")
	writeLarge(t, file)
	peak.Alone(t, memoryFile, file)
}

// onDisk has a run's document in a file, and forgets what is kept of it.
type onDisk struct {
	Store
	document string
	kept     *int64
}

func (o onDisk) Artefact(_ context.Context, _, name string) (io.ReadCloser, error) {
	if name == protocol.ArtefactInfo {
		return io.NopCloser(strings.NewReader("{}")), nil
	}
	return os.Open(o.document)
}

func (o onDisk) PutArtefact(_ context.Context, _ holdfast.AttemptRef, _ string, data io.Reader) (err error) {
	*o.kept, err = io.Copy(io.Discard, data)
	return err
}

func takeLarge(t *testing.T, name string) {
	digest, err := os.ReadFile(name + ".digest")
	if err != nil {
		t.Fatal(err)
	}
	kept := int64(0)
	r := newResults(onDisk{document: name, kept: &kept}, slog.New(slog.DiscardHandler), time.Now)
	plan, result, err := r.recordPlan(t.Context(), holdfast.Run{}, holdfast.AttemptRef{Run: "run-1", Attempt: 1},
		protocol.Result{Status: holdfast.RunPlanned, PlanDigest: holdfast.Digest(digest)})
	if err != nil || result.Status != holdfast.RunPlanned || plan.Counts.Update != 2000 || kept < 30<<20 {
		t.Fatalf("it ended %s with %+v and %d bytes: %+v, %v", result.Status, plan.Counts, kept, result.Failure, err)
	}
	peak.Bound(t, mostMemory)
}

func writeLarge(t *testing.T, name string) {
	value := func(what string, i int) plandoc.Value {
		text := strings.Repeat(fmt.Sprintf("%s value %d. ", what, i), 8<<10/16)
		v, err := plandoc.NewValue(map[string]any{"id": json.Number(strconv.Itoa(i)), "input": text})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	d := plandoc.Document{Version: plandoc.Version}
	for i := range 2000 {
		d.Resources = append(d.Resources, plandoc.Resource{
			Address: fmt.Sprintf("terraform_data.x[%d]", i), Type: "terraform_data", Provider: "terraform.io/builtin/terraform",
			Actions: []string{"update"}, Before: value("old", i), After: value("new", i),
		})
	}
	d.Sort()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Encode(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".digest", []byte(d.Digest()), 0o600); err != nil {
		t.Fatal(err)
	}
}
