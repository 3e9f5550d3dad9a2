package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/holdfast-dev/holdfast"
)

const (
	// toldDifferences is how many differences to a review are told.
	toldDifferences = 10
	// askReview is how long the agent waits for the artefacts of a reviewed run
	// that it needs for words only.
	askReview = 20 * time.Second
)

// planInput is what a plan is made of, in parts that can be told.
type planInput struct {
	Destroy   bool              `json:"destroy,omitempty"` // it is the plan of a destruction
	Source    holdfast.Digest   `json:"source"`
	Engine    string            `json:"engine"` // name and version
	LockFile  holdfast.Digest   `json:"lockFile,omitempty"`
	Providers map[string]string `json:"providers,omitempty"` // version by source address, from the lock file
	Modules   holdfast.Digest   `json:"modules,omitempty"`   // content of the modules that init fetched
	// Secrets are keyed hashes of the secret variables, for words only: InputDigest
	// does not have them, as what they change is in the plan.
	Secrets map[string]string `json:"secrets,omitempty"`
}

// destroys reports whether the attempt is about the destruction of everything.
func (t *attempt) destroys() bool {
	return t.a.Kind == holdfast.RunDestroy || t.a.Destroy && t.a.Kind == holdfast.RunPlan
}

// noteInput notes the digest of all that the plan is made of, and keeps the
// parts.
func (t *attempt) noteInput(ctx context.Context) error {
	fetched := t.prepared.Fetched
	d := holdfast.NewDigester("input")
	d.Add(string(t.a.SourceDigest), t.engine.name, t.engine.version, string(t.lockFile), string(fetched))
	if t.destroys() {
		d.Add("destroy") // of the same code it is the opposite
	}
	t.result.InputDigest = d.Digest()
	t.input = planInput{
		Destroy: t.destroys(), Source: t.a.SourceDigest, Engine: t.engine.name + " " + t.engine.version,
		Providers: lockedProviders(t.lockFile), Modules: fetched, Secrets: t.secretPrints,
	}
	if t.lockFile != nil {
		t.input.LockFile = holdfast.DigestOf(t.lockFile)
	}
	return t.putJSON(ctx, holdfast.ArtefactInput, t.input)
}

// lockedProviders returns the versions that a provider lock file pins, as far as
// it can be read.
func lockedProviders(lock []byte) map[string]string {
	if len(lock) == 0 || len(lock) > maxCodeFile || tooDeep(lock) {
		return nil
	}
	file, _ := hclparse.NewParser().ParseHCL(lock, engineLockFile)
	if file == nil || file.Body == nil {
		return nil
	}
	content, _, _ := file.Body.PartialContent(&hcl.BodySchema{
		Blocks: []hcl.BlockHeaderSchema{{Type: "provider", LabelNames: []string{"source"}}},
	})
	if content == nil {
		return nil
	}
	versions := map[string]string{}
	for _, block := range content.Blocks {
		attributes, _ := block.Body.JustAttributes()
		versions[block.Labels[0]] = stringAttribute(attributes["version"])
	}
	return versions
}

// changesSince returns in words how the input differs from a former one.
func (now planInput) changesSince(then planInput) []string {
	var words []string
	switch {
	case now.Destroy && !then.Destroy:
		words = append(words, "it is a destruction, which was not reviewed")
	case then.Destroy && !now.Destroy:
		words = append(words, "a destruction was reviewed, and this is none")
	}
	if now.Source != then.Source {
		words = append(words, "the cluster's code or variables have changed")
	}
	if now.Engine != then.Engine {
		words = append(words, fmt.Sprintf("the engine is %s, it was %s", now.Engine, then.Engine))
	}
	if now.LockFile != then.LockFile {
		words = append(words, providerChanges(now.Providers, then.Providers)...)
	}
	if now.Modules != then.Modules {
		words = append(words, "a module that init fetches has other content than before: is its version pinned?")
	}
	return append(words, now.secretChanges(then)...)
}

func providerChanges(now, then map[string]string) []string {
	var words []string
	all := maps.Clone(then)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, now)
	for _, source := range slices.Sorted(maps.Keys(all)) {
		name := strings.TrimPrefix(strings.TrimPrefix(source, "registry.terraform.io/"), "registry.opentofu.org/")
		version, is := now[source]
		former, was := then[source]
		switch {
		case !was:
			words = append(words, fmt.Sprintf("provider %s %s is new", name, version))
		case !is:
			words = append(words, fmt.Sprintf("provider %s %s is gone", name, former))
		case version != former:
			words = append(words, fmt.Sprintf("provider %s is %s, it was %s", name, version, former))
		}
	}
	if len(words) == 0 {
		words = append(words, "the provider lock file has other constraints or checksums for the same versions")
	}
	return words
}

// whatChanged says in words how the plan differs from what was reviewed.
func (t *attempt) whatChanged(ctx context.Context) string {
	if len(t.a.Reviews) == 0 {
		return "no plan of this was reviewed"
	}
	ctx, cancel := context.WithTimeout(ctx, askReview)
	defer cancel()
	review := t.a.Reviews[len(t.a.Reviews)-1]
	same := review.InputDigest.Equal(t.result.InputDigest)
	var input planInput
	known := (!same || len(t.secrets) > 0) && t.readStored(ctx, review.Run, holdfast.ArtefactInput, &input) == nil
	if !same {
		if words := t.input.changesSince(input); known && len(words) > 0 {
			return fmt.Sprintf("the input is not what was reviewed in run %s: %s", review.Run, some(words))
		}
		return fmt.Sprintf("the input is not what was reviewed: the code, its modules, the provider versions or the engine differ from those of run %s", review.Run)
	}
	if len(review.Prints) == 0 {
		var then holdfast.Plan
		if err := t.readStored(ctx, review.Run, holdfast.ArtefactPlan, &then); err == nil && then.Fingerprint == review.Fingerprint {
			review.Prints = then.Prints
		}
	}
	words := t.input.secretChanges(input)
	if len(review.Prints) > 0 {
		words = append(words, Differences(t.plan.Prints, review.Prints)...)
	}
	if len(words) > 0 {
		return fmt.Sprintf("the plan differs from the reviewed one of run %s: %s", review.Run, some(words))
	}
	return fmt.Sprintf("the plan would do something else than the reviewed one of run %s: the infrastructure or what the plan reads has changed since", review.Run)
}

// some joins the first of many words.
func some(words []string) string {
	more := ""
	if n := len(words) - toldDifferences; n > 0 {
		words, more = words[:toldDifferences], fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(words, "; ") + more
}

// readStored decodes a JSON artefact of another run.
func (t *attempt) readStored(ctx context.Context, run, name string, into any) error {
	r, err := t.session.StoredArtefact(ctx, run, name)
	if err != nil {
		return err
	}
	defer r.Close()
	return json.NewDecoder(io.LimitReader(r, t.exec.opts.MaxPlan)).Decode(into)
}
