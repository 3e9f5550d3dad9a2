package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-version"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

// engineTools in the order in which they are preferred.
var engineTools = []string{engineTofu, engineTerraform} //nolint:gochecknoglobals // a constant list

// engine is an engine's binary that has answered `version`.
type engine struct {
	name    string
	version string
	path    string
}

// engineSources say where engines come from.
type engineSources struct {
	// Dirs are searched for terraform and tofu before PATH. A file may lie in the
	// folder itself or in a folder named by its version.
	Dirs []string
	// Download allows engines to be downloaded when none that is installed fits.
	Download bool
	// TerraformMirror and TofuMirror are base URLs to download from instead of
	// the vendors' sites.
	TerraformMirror, TofuMirror string
	// Validation is "signature" (default) or "sha": how downloads are verified.
	Validation string
}

// check returns what is wrong with them.
func (o engineSources) check() error {
	switch o.Validation {
	case "", validateSignature, validateSHA:
		return nil
	default:
		return fmt.Errorf("validation %q: must be %q or %q", o.Validation, validateSignature, validateSHA)
	}
}

// engineOptions are what an engineStore needs. All are required.
type engineOptions struct {
	Sources engineSources
	Dir     string            // keeps what is downloaded; it exists
	Env     map[string]string // PATH is searched, and engines are asked with PATH and HOME
	Logger  *slog.Logger
}

// engineStore finds installed engines, and downloads others. It is safe for
// concurrent use.
type engineStore struct {
	opts    engineOptions
	install chan struct{} // one download at a time

	mu     sync.Mutex
	probed map[string]probe
}

func newEngineStore(opts engineOptions) *engineStore {
	return &engineStore{opts: opts, install: make(chan struct{}, 1), probed: map[string]probe{}}
}

// temporary is the prefix of folders that are not complete.
const temporary = "tmp-"

func removeLeftovers(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporary) {
			_ = folders.RemoveAll(filepath.Join(dir, entry.Name()))
		}
	}
}

// engineWish is what a cluster and its code ask for.
type engineWish struct {
	tools       []string // in order of preference
	constraints map[string]constraint
	pinName     string
	pinVersion  string
	held        bool // to pinName: the document does not name an engine
}

// wish reads what is asked for: the cluster's constraint, else a version file
// as tenv reads them, and always the code's required_version. The engine that the
// cluster was last applied with is another one only if the document names it. An
// exact engine is asked for by nobody but the assignment.
func wish(a holdfast.Assignment, module rootModule, dir, bundle string) (engineWish, error) {
	if a.Exact {
		return exactWish(a)
	}
	w := engineWish{pinName: a.PinName, pinVersion: a.PinVersion, constraints: map[string]constraint{}}
	pinned := map[string]string{}
	if a.Engine.Version == "" {
		for _, tool := range engineTools {
			text, err := versionFile(tool, dir, bundle)
			if err != nil {
				return w, err
			}
			pinned[tool] = text
		}
	}
	switch asked, why := askedByCode(module, pinned); {
	case slices.Contains(engineTools, a.Engine.Name):
		w.tools = []string{a.Engine.Name}
	case a.Engine.Name != "":
		return w, fmt.Errorf("engine %q: must be %q or %q", a.Engine.Name, engineTerraform, engineTofu)
	case slices.Contains(engineTools, a.PinName):
		if asked != "" && asked != a.PinName {
			return w, &changedEngineError{from: a.PinName + " " + a.PinVersion, to: asked, why: why}
		}
		w.tools, w.held = []string{a.PinName}, true
	case asked != "":
		w.tools = []string{asked}
	default:
		w.tools = engineTools
	}
	for _, tool := range engineTools {
		c, err := constraintOf(a.Engine.Version, pinned[tool], module.requires)
		if err != nil {
			return w, err
		}
		w.constraints[tool] = c
	}
	return w, nil
}

// askedByCode returns the only engine that the code is for, and what says so;
// empty: either.
func askedByCode(module rootModule, versionFiles map[string]string) (tool, why string) {
	switch {
	case module.tofu != "":
		return engineTofu, module.tofu + " is read by tofu only"
	case versionFiles[engineTofu] != "" && versionFiles[engineTerraform] == "":
		return engineTofu, "a version file asks for tofu " + versionFiles[engineTofu]
	case versionFiles[engineTerraform] != "" && versionFiles[engineTofu] == "":
		return engineTerraform, "a version file asks for terraform " + versionFiles[engineTerraform]
	}
	return "", ""
}

// exactWish asks for the engine of the last applied run and no other: what is
// compared with what was applied, or destroyed, must be read by what wrote it.
func exactWish(a holdfast.Assignment) (engineWish, error) {
	w := engineWish{pinName: a.PinName, pinVersion: a.PinVersion, tools: []string{a.PinName}}
	if !slices.Contains(engineTools, a.PinName) {
		return w, fmt.Errorf("engine of the last applied run: %q is not %q or %q", a.PinName, engineTerraform, engineTofu)
	}
	v, err := version.NewVersion(a.PinVersion)
	if err != nil {
		return w, fmt.Errorf("engine of the last applied run: version %q: %w", a.PinVersion, err)
	}
	list, err := version.NewConstraint("= " + v.String())
	if err != nil {
		return w, fmt.Errorf("engine of the last applied run: version %q: %w", a.PinVersion, err)
	}
	w.constraints = map[string]constraint{
		a.PinName: {list: list, words: fmt.Sprintf("%q (the last applied run's)", "= "+v.String())},
	}
	return w, nil
}

// choose returns the engine to use: the one of the last applied run if it still
// fits, else the newest installed one, else a downloaded one. A binary that would
// not say its version just now is not a reason to take another.
func (s *engineStore) choose(ctx context.Context, w engineWish) (engine, error) {
	if err := w.possible(); err != nil {
		return engine{}, err
	}
	var seen survey
	for _, tool := range engineTools {
		seen.add(s.installed(ctx, tool))
	}
	if err := ctx.Err(); err != nil {
		return engine{}, err
	}
	if tool := w.pinName; slices.Contains(w.tools, tool) && w.pinVersion != "" {
		pin, err := version.NewVersion(w.pinVersion)
		if err == nil && w.constraints[tool].allows(pin) {
			found, ok, err := s.exactly(ctx, tool, pin, seen)
			if err != nil || ok {
				return found, err
			}
			s.opts.Logger.WarnContext(ctx, "engine of the last applied run is gone", "reason", tool+" "+w.pinVersion)
		}
	}
	for _, tool := range w.tools {
		// What did not answer could be newer.
		if silent := seen.silentOf(tool); len(silent) > 0 {
			return engine{}, &silentEngineError{silent}
		}
		if best, ok := seen.newest(tool, w.constraints[tool]); ok {
			return best, nil
		}
	}
	if !s.opts.Sources.Download {
		return engine{}, &noEngineError{wish: w, seen: seen}
	}
	return s.fetchFirst(ctx, w, seen)
}

// fetchFirst downloads the first of the tools that has a release that fits.
func (s *engineStore) fetchFirst(ctx context.Context, w engineWish, seen survey) (engine, error) {
	var first error
	for _, tool := range w.tools {
		if !w.constraints[tool].possible(tool) {
			continue
		}
		found, err := s.download(ctx, tool, w.constraints[tool])
		if err == nil {
			return found, nil
		}
		var failed *downloadError
		if errors.As(err, &failed) {
			failed.seen = seen
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, errNoRelease) {
			break // another tool must not come in for one that is only out of reach
		}
	}
	return engine{}, first
}

// exactly returns the version if it is installed or can be downloaded.
func (s *engineStore) exactly(ctx context.Context, tool string, v *version.Version, seen survey) (engine, bool, error) {
	for _, candidate := range seen.engines {
		if found, err := version.NewVersion(candidate.version); candidate.name == tool && err == nil && found.Equal(v) {
			return candidate, true, nil
		}
	}
	if silent := seen.silentOf(tool); len(silent) > 0 {
		return engine{}, false, &silentEngineError{silent}
	}
	if !s.opts.Sources.Download {
		return engine{}, false, nil
	}
	exact := constraint{list: version.MustConstraints(version.NewConstraint("= " + v.String()))}
	found, err := s.download(ctx, tool, exact)
	var failed *downloadError
	if errors.As(err, &failed) {
		failed.seen = seen
	}
	return found, err == nil, err
}

// noEngineError says that nothing that is installed fits.
type noEngineError struct {
	wish engineWish
	seen survey
}

func (e *noEngineError) Error() string {
	var wanted []string
	for _, tool := range e.wish.tools {
		wanted = append(wanted, strings.TrimSpace(tool+" "+e.wish.constraints[tool].words))
	}
	return fmt.Sprintf("no engine fits %s; %s", strings.Join(wanted, " or "), e.seen.String())
}

// hint names the engine that would fit and is not taken, as the cluster was last
// applied with another.
func (e *noEngineError) hint() string {
	for _, tool := range engineTools {
		best, ok := e.seen.newest(tool, e.wish.constraints[tool])
		if e.wish.held && ok {
			return fmt.Sprintf("the cluster was last applied with %s %s, and its engine is changed only by name: set spec.engine.name to %s to go on with %s %s; or %s",
				e.wish.pinName, e.wish.pinVersion, tool, best.name, best.version, noEngineHint)
		}
	}
	return noEngineHint
}

// Hints of what to do when no engine fits.
const (
	noEngineHint = "install an engine that fits where the agent finds it, allow downloads in the runner's configuration, or change the constraint"
	noExactHint  = "a check for drift, and a destruction, take the engine that the cluster was last applied with: install that version where the agent finds it, or allow downloads in the runner's configuration"
)

// versionFileNames are the files that tenv reads a pinned version from.
var versionFileNames = []string{ //nolint:gochecknoglobals // a constant list
	".terraform-version", ".opentofu-version", ".tfswitchrc", ".tool-versions",
	"terragrunt.hcl", "terragrunt.hcl.json", "root.hcl", "root.hcl.json",
}

// hasVersionFile reports whether dir or a parent of it up to bundle has one. One
// that tenv could not parse safely is an error.
func hasVersionFile(dir, bundle string) (bool, error) {
	found := false
	for {
		for _, name := range versionFileNames {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			found = true
			if strings.Contains(name, ".hcl") {
				if _, err := parseCode(path); errors.Is(err, errTooDeep) {
					return false, fmt.Errorf("read %s: %w", name, err)
				}
			}
		}
		if dir == bundle || len(dir) <= len(bundle) {
			return found, nil
		}
		dir = filepath.Dir(dir)
	}
}

// engineFault is why an attempt has no engine.
func engineFault(err error, exact bool) error {
	var (
		impossible *contradictionError
		changed    *changedEngineError
		silent     *silentEngineError
		none       *noEngineError
		download   *downloadError
	)
	switch {
	case errors.As(err, &changed):
		return &attemptError{cause: holdfast.CauseInvalidConfiguration, err: err, hint: changed.hint()}
	case errors.As(err, &impossible):
		return &attemptError{cause: holdfast.CauseInvalidConfiguration, err: err, hint: impossible.hint()}
	case errors.As(err, &silent):
		return &attemptError{cause: holdfast.CauseNoEngine, transient: true, err: err, hint: silentEngineHint}
	case errors.As(err, &none) && exact:
		return &attemptError{cause: holdfast.CauseNoEngine, err: err, hint: noExactHint}
	case errors.As(err, &none):
		return &attemptError{cause: holdfast.CauseNoEngine, err: err, hint: none.hint()}
	case errors.As(err, &download):
		return &attemptError{cause: holdfast.CauseDownloadFailed, transient: download.passes(), err: err, hint: download.hint()}
	}
	return fmt.Errorf("choose engine: %w", err)
}
