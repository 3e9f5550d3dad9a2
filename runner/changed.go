package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/plan"
)

const (
	// askReview is how long the agent waits for the artefacts of a reviewed run
	// that it needs for words only.
	askReview = 20 * time.Second
)

// destroys reports whether the attempt is about the destruction of everything.
func (t *attempt) destroys() bool {
	return t.a.Kind == holdfast.RunDestroy || t.a.Destroy && t.a.Kind == holdfast.RunPlan
}

// noteInput notes the digest of all that the plan is made of, and keeps the
// parts.
func (t *attempt) noteInput(ctx context.Context) error {
	fetched := t.prepared.Fetched
	d := holdfast.NewDigester("input")
	d.Add(string(t.a.SourceDigest), t.engine.Name, t.engine.Version, string(t.lockFile), string(fetched))
	if t.destroys() {
		d.Add("destroy") // of the same code it is the opposite
	}
	t.result.InputDigest = d.Digest()
	t.input = plan.Input{
		Destroy: t.destroys(), Source: t.a.SourceDigest, Engine: t.engine.Name + " " + t.engine.Version,
		Providers: lockedProviders(t.lockFile), Modules: fetched,
		Fetched: fetchedModules(t.prepared), Secrets: t.secrets.Prints,
	}
	if t.lockFile != nil {
		t.input.LockFile = holdfast.DigestOf(t.lockFile)
	}
	return t.putJSON(ctx, holdfast.ArtefactInput, t.input)
}

// lockedProviders returns the versions that a provider lock file pins, as far as
// it can be read.
func lockedProviders(lock []byte) map[string]string {
	if len(lock) == 0 || len(lock) > modulecode.MaxFile || modulecode.TooDeep(lock) {
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
		versions[block.Labels[0]] = modulecode.StringAttribute(attributes["version"])
	}
	return versions
}

// whatChanged says in words how the plan differs from what was reviewed.
func (t *attempt) whatChanged(ctx context.Context) string {
	if len(t.a.Reviews) == 0 {
		return "no plan of this was reviewed"
	}
	ctx, cancel := context.WithTimeout(ctx, askReview)
	defer cancel()
	review := t.a.Reviews[len(t.a.Reviews)-1]
	if review.PlanDigest == "" {
		return fmt.Sprintf("the plan of run %s was recorded before plan documents were; it cannot be compared", review.Run)
	}
	same := review.InputDigest.Equal(t.result.InputDigest)
	var input plan.Input
	known := (!same || len(t.secrets.Values) > 0) && t.readStored(ctx, review.Run, holdfast.ArtefactInput, &input) == nil
	if !same {
		if words := t.input.ChangesSince(input); known && len(words) > 0 {
			return fmt.Sprintf("the input is not what was reviewed in run %s: %s", review.Run, failure.Some(words))
		}
		return fmt.Sprintf("the input is not what was reviewed: the code, its modules, the provider versions or the engine differ from those of run %s", review.Run)
	}
	words := t.input.SecretChanges(input)
	if reviewed, err := t.reviewedDocument(ctx, review); err == nil {
		words = append(words, t.document.Differences(reviewed)...)
	}
	if len(words) > 0 {
		return fmt.Sprintf("the plan differs from the reviewed one of run %s: %s", review.Run, failure.Some(words))
	}
	return fmt.Sprintf("the plan would do something else than the reviewed one of run %s: the infrastructure or what the plan reads has changed since", review.Run)
}
