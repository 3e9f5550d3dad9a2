// Modules that init fetches, and whether they are those that were reviewed or applied.

package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// A source of a module that is not a version and no commit, such as a branch, can be
// another module whenever it is fetched, whether the root module calls it or a fetched
// module does; and tags are moved. What is compared with a review, or with
// what was applied, has to have the same ones: an apply looks for those that were
// reviewed among those that are prepared here, and fetches them itself otherwise; a
// drift check gets those that the apply has kept, and without them finds at most that
// nothing has changed. An apply takes no code from the agent of a plan.

// expectModules notes the digests of the modules that the attempt should have: of
// what was applied, or of the reviewed plans. None means whatever is fetched.
func (t *initializing) expectModules(ctx context.Context) error {
	if !t.module.Fetched && !t.module.Opaque {
		return nil
	}
	var runs []string
	for _, review := range slices.Backward(t.a.Reviews) {
		runs = append(runs, review.Run)
	}
	if t.a.Modules != "" {
		runs = []string{t.a.Modules}
	}
	t.expected = nil
	for _, run := range runs {
		var input plan.Input
		err := t.readStored(ctx, run, protocol.ArtefactInput, &input)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && input.Modules != "" {
			t.expected = append(t.expected, input.Modules)
		}
	}
	return nil
}

// openPrepared opens a prepared folder that has the expected modules.
func (t *initializing) openPrepared(names initcache.Names) (ok bool) {
	for _, digest := range t.expected {
		if t.prepared, ok = t.exec.inits.OpenOf(names.KeyOf, digest); ok {
			return true
		}
		if t.prepared, ok = t.exec.inits.OpenWith(names.Key, digest); ok {
			return true
		}
	}
	if len(t.expected) > 0 {
		return false
	}
	t.prepared, ok = t.exec.inits.Open(names.Key)
	return ok
}

// unpinned reports whether another init may fetch other modules than those in a folder.
func (t *initializing) unpinned(modules string) bool {
	return t.module.Unpinned || t.module.Opaque || modulecode.CallsUnpinned(modules, t.engine.Name)
}

// bringModules puts the modules of what was applied where init looks for them, and
// reports whether it has. Without them init fetches what there is now.
func (t *initializing) bringModules(ctx context.Context) (bool, error) {
	if t.a.Modules == "" || len(t.expected) == 0 {
		return false, nil
	}
	kept, err := t.session.StoredArtefact(ctx, t.a.Modules, protocol.ArtefactModules)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if errors.Is(err, holdfast.ErrNotFound) { // not every run keeps them
		return false, nil
	} else if err != nil {
		t.Say("the modules of what was applied are fetched again: %v", err)
		return false, nil
	}
	defer kept.Close()
	dir := filepath.Join(t.root, dataDir, initcache.Modules)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("bring modules: %w", err)
	}
	if err := workspace.UnpackAll(ctx, kept, dir, t.exec.opts.Limits.Bundle); err != nil {
		t.Say("the modules of what was applied are fetched again: %v", err)
		return false, folders.RemoveAll(dir)
	}
	return true, nil
}

// compareModules notes how the modules differ from those of what was applied, which may
// have kept none: a plan that found no changes does not, nor does an apply of modules that
// are pinned, or too large. Everything can be destroyed, and a state put right, with any.
func (t *initializing) compareModules(ctx context.Context) error {
	bound := t.a.Modules != "" && t.a.State == nil && !t.destroys()
	if !bound || len(t.expected) == 0 || slices.Contains(t.expected, t.prepared.Fetched) {
		return nil
	}
	var then plan.Input
	if err := t.readStored(ctx, t.a.Modules, protocol.ArtefactInput, &then); err != nil {
		return fmt.Errorf("read what was applied: %w", err)
	}
	t.otherModules = plan.ModuleChanges(fetchedModules(t.prepared), then.Fetched)
	t.Say("the modules are not those of run %s, which was applied last: %s", t.a.Modules, failure.Some(t.otherModules))
	return nil
}

// checkModules refuses changes that are planned with other modules than those of what was
// applied: what has changed in a module would be reported as drift, and applied as such.
// If nothing is to be changed there is no drift, whichever modules say so.
func (t *planning) checkModules() error {
	if len(t.otherModules) == 0 {
		return nil
	}
	return &failure.Error{
		Cause: holdfast.CauseInvalidConfiguration,
		Err:   fmt.Errorf("plan: it has changes, and its modules are not those of the last apply, run %s: %s", t.a.Modules, failure.Some(t.otherModules)),
		Hint: fmt.Sprintf("changed modules are not drift: plan the cluster with the current modules (`holdfast replan %s`), "+
			"and apply that plan; pin the versions or commits of modules", t.a.Cluster),
	}
}

// keepModules keeps the modules that are about to be applied, for checks to come,
// unless their sources say exactly which ones they are.
func (t *initializing) keepModules(ctx context.Context) error {
	if !t.a.Kind.Applies() || !t.prepared.Unpinned {
		return nil
	}
	small := journal.NewBounded(protocol.ArtefactLimit(protocol.ArtefactModules))
	if err := t.prepared.PackModules(small); err != nil {
		return fmt.Errorf("pack modules: %w", err)
	}
	data, err := small.Bytes()
	if err != nil {
		t.Say("the fetched modules are too large to be kept: drift checks will fetch them again")
		return nil
	}
	return t.put(ctx, protocol.ArtefactModules, bytes.NewReader(data))
}

// fetchedModules returns what is known of the modules in a folder.
func fetchedModules(f initcache.Folder) map[string]plan.Module {
	if len(f.Each) == 0 {
		return nil
	}
	all := make(map[string]plan.Module, len(f.Each))
	for _, m := range f.Each {
		all[m.Name] = plan.Module{Version: m.Version, Content: m.Content}
	}
	return all
}
