// Which engine a cluster and its code get.

package engine

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
	"golang.org/x/sync/singleflight"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// engineTools in the order in which they are preferred.
var engineTools = []string{modulecode.Tofu, modulecode.Terraform} //nolint:gochecknoglobals // a constant list

// Binary is an engine's binary that has answered `version`.
type Binary struct {
	Name    string
	Version string
	Path    string
}

// Sources say where engines come from.
type Sources struct {
	// Dirs are searched for terraform and tofu before PATH. A file may lie in the
	// folder itself or in a folder named by its version.
	Dirs []string
	// Download allows engines to be downloaded when none that is installed fits.
	Download bool
	// TerraformMirror, TofuMirror and TerragruntMirror are base URLs to download from
	// instead of the vendors' sites.
	TerraformMirror, TofuMirror, TerragruntMirror string
	// Validation is "signature" (default) or "sha": how downloads are verified.
	Validation string
}

// Check returns what is wrong with them.
func (o Sources) Check() error {
	switch o.Validation {
	case "", validateSignature, validateSHA:
		return nil
	default:
		return fmt.Errorf("validation %q: must be %q or %q", o.Validation, validateSignature, validateSHA)
	}
}

// Options are what a Store needs. All are required.
type Options struct {
	Sources Sources
	Dir     string            // keeps what is downloaded; it exists
	Env     map[string]string // PATH is searched, and engines are asked with PATH and HOME
	Logger  *slog.Logger
}

// Store finds installed engines, and downloads others. It is safe for
// concurrent use.
type Store struct {
	opts    Options
	install chan struct{} // one download at a time

	asking singleflight.Group // binaries for their versions, by path

	mu     sync.Mutex
	probed map[string]probe
}

// NewStore returns a Store that knows no engine yet.
func NewStore(opts Options) *Store {
	return &Store{opts: opts, install: make(chan struct{}, 1), probed: map[string]probe{}}
}

// temporary is the prefix of folders that are not complete.
const temporary = "tmp-"

// RemoveLeftovers removes what a dead process left half downloaded in dir.
func RemoveLeftovers(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporary) {
			_ = folders.RemoveAll(filepath.Join(dir, entry.Name()))
		}
	}
}

// Wish is what a cluster and its code ask for.
type Wish struct {
	tools       []string // in order of preference
	constraints map[string]constraint
	pinName     string
	pinVersion  string
	held        bool // to pinName: the document does not name an engine
}

// WishOf reads what is asked for: the cluster's constraint, otherwise a version file as
// tenv reads them, and always the code's required_version. A change from the engine
// that the cluster was last applied with needs the document to name it. Only the
// assignment asks for an exact engine.
func WishOf(a protocol.Assignment, module modulecode.Root, dir, bundle string) (Wish, error) {
	if a.Exact {
		return exactWish(a)
	}
	w := Wish{pinName: a.PinName, pinVersion: a.PinVersion, constraints: map[string]constraint{}}
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
		return w, fmt.Errorf("engine %q: must be %q or %q", a.Engine.Name, modulecode.Terraform, modulecode.Tofu)
	case slices.Contains(engineTools, a.PinName):
		if asked != "" && asked != a.PinName {
			return w, &ChangedError{from: a.PinName + " " + a.PinVersion, to: asked, why: why}
		}
		w.tools, w.held = []string{a.PinName}, true
	case asked != "":
		w.tools = []string{asked}
	default:
		w.tools = engineTools
	}
	for _, tool := range engineTools {
		c, err := constraintOf(a.Engine.Version, pinned[tool], module.Requires)
		if err != nil {
			return w, err
		}
		w.constraints[tool] = c
	}
	return w, nil
}

// askedByCode returns the only engine that the code is for, and what says so;
// empty: either.
func askedByCode(module modulecode.Root, versionFiles map[string]string) (tool, why string) {
	switch {
	case module.Tofu != "":
		return modulecode.Tofu, module.Tofu + " is read by tofu only"
	case versionFiles[modulecode.Tofu] != "" && versionFiles[modulecode.Terraform] == "":
		return modulecode.Tofu, "a version file asks for tofu " + versionFiles[modulecode.Tofu]
	case versionFiles[modulecode.Terraform] != "" && versionFiles[modulecode.Tofu] == "":
		return modulecode.Terraform, "a version file asks for terraform " + versionFiles[modulecode.Terraform]
	}
	return "", ""
}

// exactWish asks for the engine of the last applied run and no other: what is
// compared with what was applied, or destroyed, must be read by what wrote it.
func exactWish(a protocol.Assignment) (Wish, error) {
	w := Wish{pinName: a.PinName, pinVersion: a.PinVersion, tools: []string{a.PinName}}
	if !slices.Contains(engineTools, a.PinName) {
		return w, fmt.Errorf("engine of the last applied run: %q is not %q or %q", a.PinName, modulecode.Terraform, modulecode.Tofu)
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

// Choose returns the engine to use: the one of the last applied run if it still fits,
// otherwise the newest installed one, otherwise a downloaded one. A binary that did not
// report its version just now is not a reason to use another.
func (s *Store) Choose(ctx context.Context, w Wish) (Binary, error) {
	if err := w.possible(); err != nil {
		return Binary{}, err
	}
	var seen survey
	for _, tool := range engineTools {
		seen.add(s.installed(ctx, tool))
	}
	if err := ctx.Err(); err != nil {
		return Binary{}, err
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
			return Binary{}, &silentEngineError{silent}
		}
		if best, ok := seen.newest(tool, w.constraints[tool]); ok {
			return best, nil
		}
	}
	if !s.opts.Sources.Download {
		return Binary{}, &noEngineError{wish: w, seen: seen}
	}
	return s.fetchFirst(ctx, w, seen)
}

// fetchFirst downloads the first of the tools that has a release that fits.
func (s *Store) fetchFirst(ctx context.Context, w Wish, seen survey) (Binary, error) {
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
			break // another tool must not replace one that is only unreachable
		}
	}
	return Binary{}, first
}

// exactly returns the version if it is installed or can be downloaded.
func (s *Store) exactly(ctx context.Context, tool string, v *version.Version, seen survey) (Binary, bool, error) {
	for _, candidate := range seen.engines {
		if found, err := version.NewVersion(candidate.Version); candidate.Name == tool && err == nil && found.Equal(v) {
			return candidate, true, nil
		}
	}
	if silent := seen.silentOf(tool); len(silent) > 0 {
		return Binary{}, false, &silentEngineError{silent}
	}
	if !s.opts.Sources.Download {
		return Binary{}, false, nil
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
	wish Wish
	seen survey
}

func (e *noEngineError) Error() string {
	var wanted []string
	for _, tool := range e.wish.tools {
		wanted = append(wanted, strings.TrimSpace(tool+" "+e.wish.constraints[tool].words))
	}
	return fmt.Sprintf("no engine fits %s; %s", strings.Join(wanted, " or "), e.seen.String())
}

// hint names the engine that would fit and is not used, as the cluster was last applied
// with another.
func (e *noEngineError) hint() string {
	for _, tool := range engineTools {
		best, ok := e.seen.newest(tool, e.wish.constraints[tool])
		if e.wish.held && ok {
			return fmt.Sprintf("the cluster was last applied with %s %s, and its engine is changed only by name: set spec.engine.name to %s to continue with %s %s; or %s",
				e.wish.pinName, e.wish.pinVersion, tool, best.Name, best.Version, noEngineHint)
		}
	}
	return noEngineHint
}

// Hints of what to do when no engine fits.
const (
	noEngineHint = "install a matching engine where the agent finds it, allow downloads in the runner's configuration, or change the constraint"
	HintExact    = "a drift check, and a destruction, take the engine that the cluster was last applied with: install that version where the agent finds it, or allow downloads in the runner's configuration"
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
				if err := modulecode.Safe(path, "terraform_version_constraint", "terragrunt_version_constraint"); errors.Is(err, modulecode.ErrTooDeep) {
					return false, fmt.Errorf("read %s: %w", name, err)
				}
			}
		}
		if dir == bundle || len(dir) <= len(bundle) || dir == filepath.Dir(dir) {
			return found, nil
		}
		dir = filepath.Dir(dir)
	}
}

// Fault is why an attempt has no engine.
func Fault(err error, exact bool) error {
	var (
		impossible *contradictionError
		changed    *ChangedError
		silent     *silentEngineError
		none       *noEngineError
		download   *downloadError
	)
	switch {
	case errors.As(err, &changed):
		return &failure.Error{Cause: holdfast.CauseInvalidConfiguration, Err: err, Hint: changed.hint()}
	case errors.As(err, &impossible):
		return &failure.Error{Cause: holdfast.CauseInvalidConfiguration, Err: err, Hint: impossible.hint()}
	case errors.As(err, &silent):
		return &failure.Error{Cause: holdfast.CauseNoEngine, Transient: true, Err: err, Hint: silentEngineHint}
	case errors.As(err, &none) && exact:
		return &failure.Error{Cause: holdfast.CauseNoEngine, Err: err, Hint: HintExact}
	case errors.As(err, &none):
		return &failure.Error{Cause: holdfast.CauseNoEngine, Err: err, Hint: none.hint()}
	case errors.As(err, &download):
		return &failure.Error{Cause: holdfast.CauseDownloadFailed, Transient: download.transient(), Err: err, Hint: download.hint()}
	}
	return fmt.Errorf("choose engine: %w", err)
}
