package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/holdfast-dev/holdfast"
)

// The engines.
const (
	engineTofu      = "tofu"
	engineTerraform = "terraform"
)

// engine is an engine's binary that has answered `version`.
type engine struct {
	name    string
	version string
	path    string
}

// engineStore finds installed engines, and downloads others. It is safe for
// concurrent use.
type engineStore struct {
	opts    ExecutorOptions
	install chan struct{} // one download at a time

	mu     sync.Mutex
	probed map[string]probe
}

// probe is what a binary answered when it was asked for its version.
type probe struct {
	size    int64
	mtime   time.Time
	version string // empty: it is not an engine
	err     error
}

// probeTimeout bounds how long a binary may take to tell its version.
const probeTimeout = 30 * time.Second

func newEngineStore(opts ExecutorOptions) *engineStore {
	return &engineStore{opts: opts, install: make(chan struct{}, 1), probed: map[string]probe{}}
}

// temporary is the prefix of folders that are not complete.
const temporary = "tmp-"

func removeLeftovers(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporary) {
			_ = removeAll(filepath.Join(dir, entry.Name()))
		}
	}
}

// engineWish is what a cluster and its code ask for.
type engineWish struct {
	tools       []string // in order of preference
	constraints map[string]constraint
	pinName     string
	pinVersion  string
}

// constraint is a set of version constraints and where they come from.
type constraint struct {
	list  version.Constraints
	words string // such as `~> 1.9 (cluster)`; empty: any version
}

func (c constraint) allows(v *version.Version) bool {
	if len(c.list) == 0 {
		return v.Prerelease() == ""
	}
	return c.list.Check(v)
}

// wish reads what is asked for: the cluster's constraint, else a version file
// as tenv reads them, and always the code's required_version. An exact engine is
// asked for by nobody but the assignment.
func wish(a holdfast.Assignment, module rootModule, dir, bundle string) (engineWish, error) {
	if a.Exact {
		return exactWish(a)
	}
	w := engineWish{pinName: a.PinName, pinVersion: a.PinVersion, constraints: map[string]constraint{}}
	pinned := map[string]string{}
	if a.Engine.Version == "" {
		for _, tool := range []string{engineTofu, engineTerraform} {
			text, err := versionFile(tool, dir, bundle)
			if err != nil {
				return w, err
			}
			pinned[tool] = text
		}
	}
	switch {
	case a.Engine.Name == engineTofu || a.Engine.Name == engineTerraform:
		w.tools = []string{a.Engine.Name}
	case a.Engine.Name != "":
		return w, fmt.Errorf("engine %q: must be %q or %q", a.Engine.Name, engineTerraform, engineTofu)
	case module.tofu, pinned[engineTofu] != "" && pinned[engineTerraform] == "":
		w.tools = []string{engineTofu}
	case pinned[engineTerraform] != "" && pinned[engineTofu] == "":
		w.tools = []string{engineTerraform}
	case a.PinName == engineTerraform:
		w.tools = []string{engineTerraform, engineTofu}
	default:
		w.tools = []string{engineTofu, engineTerraform}
	}
	for _, tool := range w.tools {
		c, err := constraintOf(a.Engine.Version, pinned[tool], module.requires)
		if err != nil {
			return w, err
		}
		w.constraints[tool] = c
	}
	return w, nil
}

// exactWish asks for the engine of the last applied run and no other: what is
// compared with what was applied, or destroyed, must be read by what wrote it.
func exactWish(a holdfast.Assignment) (engineWish, error) {
	w := engineWish{pinName: a.PinName, pinVersion: a.PinVersion, tools: []string{a.PinName}}
	if a.PinName != engineTofu && a.PinName != engineTerraform {
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

func constraintOf(cluster, file string, code []string) (constraint, error) {
	var c constraint
	var words []string
	add := func(text, from string) error {
		list, err := version.NewConstraint(text)
		if err != nil {
			return fmt.Errorf("engine version %q (%s): %w", text, from, err)
		}
		c.list = append(c.list, list...)
		words = append(words, fmt.Sprintf("%q (%s)", text, from))
		return nil
	}
	if cluster != "" {
		if err := add(cluster, "the cluster's engine.version"); err != nil {
			return c, err
		}
	}
	// tenv's strategies, such as latest-allowed, leave the choice to required_version.
	if file != "" && !strings.HasPrefix(file, "latest") && !strings.HasPrefix(file, "min") {
		if err := add(file, "a version file"); err != nil {
			return c, err
		}
	}
	for _, text := range code {
		if err := add(text, "required_version"); err != nil {
			return c, err
		}
	}
	c.words = strings.Join(words, " and ")
	return c, nil
}

// choose returns the engine to use: the one of the last applied run if it still
// fits, else the newest installed one, else a downloaded one.
func (s *engineStore) choose(ctx context.Context, w engineWish) (engine, error) {
	if tool := w.pinName; slices.Contains(w.tools, tool) && w.pinVersion != "" {
		pin, err := version.NewVersion(w.pinVersion)
		if err == nil && w.constraints[tool].allows(pin) {
			found, ok, err := s.exactly(ctx, tool, pin)
			if err != nil || ok {
				return found, err
			}
			s.opts.Logger.WarnContext(ctx, "engine of the last applied run is gone", "reason", tool+" "+w.pinVersion)
		}
	}
	var seen []string
	for _, tool := range w.tools {
		var best engine
		var newest *version.Version
		for _, candidate := range s.installed(ctx, tool) {
			seen = append(seen, fmt.Sprintf("%s %s (%s)", candidate.name, candidate.version, candidate.path))
			v, err := version.NewVersion(candidate.version)
			if err == nil && w.constraints[tool].allows(v) && (newest == nil || v.GreaterThan(newest)) {
				best, newest = candidate, v
			}
		}
		if newest != nil {
			return best, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return engine{}, err
	}
	if s.opts.Download {
		return s.download(ctx, w.tools[0], w.constraints[w.tools[0]])
	}
	return engine{}, &noEngineError{wish: w, seen: seen}
}

// exactly returns the version if it is installed or can be downloaded.
func (s *engineStore) exactly(ctx context.Context, tool string, v *version.Version) (engine, bool, error) {
	for _, candidate := range s.installed(ctx, tool) {
		if found, err := version.NewVersion(candidate.version); err == nil && found.Equal(v) {
			return candidate, true, nil
		}
	}
	if !s.opts.Download {
		return engine{}, false, nil
	}
	found, err := s.download(ctx, tool, constraint{list: version.MustConstraints(version.NewConstraint("= " + v.String()))})
	return found, err == nil, err
}

// noEngineError says that nothing fits, and what to do.
type noEngineError struct {
	wish engineWish
	seen []string
}

func (e *noEngineError) Error() string {
	var wanted []string
	for _, tool := range e.wish.tools {
		text := tool
		if words := e.wish.constraints[tool].words; words != "" {
			text += " " + words
		}
		wanted = append(wanted, text)
	}
	seen := "none is installed"
	if len(e.seen) > 0 {
		seen = "installed: " + strings.Join(e.seen, ", ")
	}
	return fmt.Sprintf("no engine fits %s; %s", strings.Join(wanted, " or "), seen)
}

// Hints of what to do when no engine fits.
const (
	noEngineHint = "install an engine that fits where the agent finds it, allow downloads in the runner's configuration, or change the constraint"
	noExactHint  = "a check for drift, and a destruction, take the engine that the cluster was last applied with: install that version where the agent finds it, or allow downloads in the runner's configuration"
)

// installed returns the tool's binaries on this machine that work, those of
// EngineDirs first, then PATH, then downloads.
func (s *engineStore) installed(ctx context.Context, tool string) []engine {
	var paths []string
	for _, dir := range slices.Concat(s.opts.EngineDirs, filepath.SplitList(s.opts.Env["PATH"])) {
		if !filepath.IsAbs(dir) {
			continue // a relative folder means another one in every workspace
		}
		paths = append(paths, filepath.Join(dir, tool))
	}
	for _, dir := range s.opts.EngineDirs {
		plain, _ := filepath.Glob(filepath.Join(dir, "*", tool))
		versioned, _ := filepath.Glob(filepath.Join(dir, tool, "*", tool))
		paths = slices.Concat(paths, plain, versioned)
	}
	downloaded, _ := filepath.Glob(filepath.Join(s.opts.WorkDir, enginesDir, tool, "*", tool))
	paths = append(paths, downloaded...)
	var found []engine
	seen := map[string]bool{}
	for _, path := range paths {
		if seen[path] {
			continue
		}
		seen[path] = true
		if answer, ok := s.probe(ctx, path); ok {
			found = append(found, engine{name: tool, version: answer, path: path})
		}
	}
	return found
}

// probe asks a binary for its version, once as long as the file stays the same.
func (s *engineStore) probe(ctx context.Context, path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", false
	}
	s.mu.Lock()
	known, ok := s.probed[path]
	s.mu.Unlock()
	if ok && known.size == info.Size() && known.mtime.Equal(info.ModTime()) {
		return known.version, known.err == nil
	}
	answer, err := askVersion(ctx, path, s.opts.Env)
	if ctx.Err() != nil {
		return "", false // which says nothing of the binary
	}
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "engine does not tell its version", "err", fmt.Errorf("ask %s: %w", path, err))
	}
	s.mu.Lock()
	s.probed[path] = probe{size: info.Size(), mtime: info.ModTime(), version: answer, err: err}
	s.mu.Unlock()
	return answer, err == nil
}

// askVersion starts the binary to learn its version. It needs no sandbox: in an
// empty folder an engine executes nothing but itself.
func askVersion(ctx context.Context, path string, env map[string]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "holdfast-version-")
	if err != nil {
		return "", fmt.Errorf("make an empty folder: %w", err)
	}
	defer os.RemoveAll(dir)
	runtime.LockOSThread() // terraform-exec ties the engine's life to this thread
	defer runtime.UnlockOSThread()
	tf, err := tfexec.NewTerraform(dir, path)
	if err != nil {
		return "", err
	}
	if err := tf.SetEnv(map[string]string{"PATH": env["PATH"], "HOME": env["HOME"], "CHECKPOINT_DISABLE": "1"}); err != nil {
		return "", err
	}
	if err := tf.SetWaitDelay(time.Second); err != nil {
		return "", err
	}
	v, _, err := tf.Version(ctx, true)
	if err != nil {
		return "", err
	}
	if v == nil {
		return "", errors.New("no version in its answer")
	}
	return v.String(), nil
}

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
