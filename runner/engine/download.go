package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/tofuutils/tenv/v4/config"
	"github.com/tofuutils/tenv/v4/pkg/loghelper"
	"github.com/tofuutils/tenv/v4/versionmanager/builder"
	terraformretriever "github.com/tofuutils/tenv/v4/versionmanager/retriever/terraform"
	terragruntretriever "github.com/tofuutils/tenv/v4/versionmanager/retriever/terragrunt"
	tofuretriever "github.com/tofuutils/tenv/v4/versionmanager/retriever/tofu"

	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// How downloads are verified.
const (
	validateSignature = "signature" // the vendor's signature of the checksums
	validateSHA       = "sha"       // the checksums only, for mirrors without signatures
)

// tenvConfig returns a configuration for one use of tenv: its values are not
// safe to share, and a reused one remembers what has changed since.
func (o Sources) tenvConfig() (config.Config, error) {
	conf, err := config.DefaultConfig()
	if err != nil {
		return conf, fmt.Errorf("configure tenv: %w", err)
	}
	conf.Displayer = loghelper.InertDisplayer
	conf.SkipSignature = o.Validation == validateSHA
	conf.Tf.RemoteURL, conf.Tofu.RemoteURL, conf.Tg.RemoteURL = o.TerraformMirror, o.TofuMirror, o.TerragruntMirror
	if o.TerraformMirror != "" {
		conf.Tf.Data["install_mode"] = config.InstallModeDirect
	}
	return conf, nil
}

// versionFile returns the version, constraint or strategy that tenv finds for
// the tool in the version files of dir and of its parents inside the bundle.
// Empty means none.
func versionFile(tool, dir, bundle string) (string, error) {
	if found, err := hasVersionFile(dir, bundle); err != nil || !found {
		return "", err
	}
	conf, err := Sources{}.tenvConfig()
	if err != nil {
		return "", err
	}
	conf.WorkPath, conf.UserPath, conf.RootPath = dir, bundle, bundle
	build := builder.BuildTfManager
	if tool == modulecode.Tofu {
		build = builder.BuildTofuManager
	}
	text, err := build(&conf, hclparse.NewParser()).ResolveWithVersionFiles()
	if err != nil {
		return "", fmt.Errorf("read version files for %s: %w", tool, err)
	}
	return text, nil
}

// retriever lists and fetches releases of one engine, verified.
type retriever interface {
	ListVersions(ctx context.Context) ([]string, error)
	Install(ctx context.Context, version, dir string) error
}

// download fetches the newest release that c allows. tenv unpacks in place and does not
// notice a half unpacked archive, so each download goes into its own folder, which gets
// its name once the binary in it works.
func (s *Store) download(ctx context.Context, tool string, c constraint) (Binary, error) {
	select {
	case s.install <- struct{}{}:
		defer func() { <-s.install }()
	case <-ctx.Done():
		return Binary{}, context.Cause(ctx)
	}
	// Somebody else may have fetched it while we waited.
	seen := s.installed(ctx, tool)
	if found, ok := seen.newest(tool, c); ok {
		return found, nil
	}
	conf, err := s.opts.Sources.tenvConfig()
	if err != nil {
		return Binary{}, err
	}
	asked := &askedAddresses{Displayer: loghelper.InertDisplayer}
	conf.Displayer = asked
	var source retriever = terraformretriever.Make(&conf)
	switch tool {
	case modulecode.Tofu:
		source = tofuretriever.Make(&conf)
	case Terragrunt: // whose releases have no signatures that tenv knows
		source = terragruntretriever.Make(&conf)
	}
	wanted, err := release(ctx, source, c)
	if err != nil {
		return Binary{}, &downloadError{what: strings.TrimSpace(tool + " " + c.words), err: asked.explain(ctx, err)}
	}
	found, err := s.fetch(ctx, source, tool, wanted)
	if err != nil {
		return Binary{}, &downloadError{what: tool + " " + wanted, err: asked.explain(ctx, err)}
	}
	s.opts.Logger.InfoContext(ctx, "engine downloaded", "reason", tool+" "+wanted)
	return found, nil
}

// release returns the newest release that c allows. An exact version is not
// looked up.
func release(ctx context.Context, source retriever, c constraint) (string, error) {
	if v, ok := c.exact(); ok {
		return v.String(), nil
	}
	names, err := source.ListVersions(ctx)
	if err != nil {
		return "", fmt.Errorf("list releases: %w", err)
	}
	var all, fitting []*version.Version
	for _, name := range names {
		v, err := version.NewVersion(name)
		if err != nil {
			continue
		}
		all = append(all, v)
		if c.allows(v) {
			fitting = append(fitting, v)
		}
	}
	switch {
	case len(all) == 0:
		return "", errNoList
	case len(fitting) == 0:
		return "", fmt.Errorf("%w: the newest of %d is %s", errNoRelease, len(all), slices.MaxFunc(all, (*version.Version).Compare))
	}
	return slices.MaxFunc(fitting, (*version.Version).Compare).String(), nil
}

var (
	errNoRelease = errors.New("no release fits")
	errNoList    = errors.New("no releases are listed")
)

// askedAddresses records what tenv asks for, as tenv looks at no HTTP status.
type askedAddresses struct {
	loghelper.Displayer

	last string
}

func (a *askedAddresses) Display(text string) {
	for word := range strings.FieldsSeq(text) {
		if strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://") {
			a.last = word
		}
	}
}

// explain requests once more what was requested last, and reports a refusal: tenv
// accepts any answer as the file.
func (a *askedAddresses) explain(ctx context.Context, failure error) error {
	if a.last == "" || errors.Is(failure, errNoRelease) {
		return failure
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.last, http.NoBody)
	if err != nil {
		return failure
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return failure
	}
	_ = response.Body.Close()
	if response.StatusCode < http.StatusBadRequest {
		return failure
	}
	return &statusError{address: a.last, status: response.StatusCode, err: failure}
}

// statusError says that a mirror refused what it was asked for.
type statusError struct {
	address string
	status  int
	err     error
}

func (e *statusError) Error() string {
	return fmt.Sprintf("GET %s: %d %s", e.address, e.status, http.StatusText(e.status))
}

func (e *statusError) Unwrap() error { return e.err }

func (s *Store) fetch(ctx context.Context, source retriever, tool, wanted string) (Binary, error) {
	dir := s.opts.Dir
	temp, err := os.MkdirTemp(dir, temporary)
	if err != nil {
		return Binary{}, err
	}
	defer func() { _ = folders.RemoveAll(temp) }()
	if err := source.Install(ctx, wanted, temp); err != nil {
		return Binary{}, err
	}
	if err := os.Chmod(temp, 0o711); err != nil { //nolint:gosec // engines may be other users
		return Binary{}, err
	}
	binary := filepath.Join(temp, tool)
	if err := os.Chmod(binary, 0o755); err != nil { //nolint:gosec // a program
		return Binary{}, err
	}
	answer, err := askVersion(ctx, binary, s.opts.Env)
	for range 20 { // a child forked meanwhile may hold the file open for writing until it execs
		if !errors.Is(err, syscall.ETXTBSY) || ctx.Err() != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
		answer, err = askVersion(ctx, binary, s.opts.Env)
	}
	if err != nil {
		return Binary{}, fmt.Errorf("start the downloaded engine: %w", err)
	}
	if answer != wanted {
		return Binary{}, fmt.Errorf("the downloaded engine reports version %s", answer)
	}
	target := filepath.Join(dir, tool, wanted)
	if err := os.MkdirAll(filepath.Dir(target), 0o711); err != nil {
		return Binary{}, err
	}
	if err := folders.RemoveAll(target); err != nil { // there, but it did not work
		return Binary{}, err
	}
	if err := os.Rename(temp, target); err != nil {
		return Binary{}, err
	}
	return Binary{Name: tool, Version: answer, Path: filepath.Join(target, tool)}, nil
}

// downloadError says that an engine could not be fetched.
type downloadError struct {
	what string
	seen survey
	err  error
}

func (e *downloadError) Error() string {
	return "download " + e.what + ": " + e.err.Error() + "; " + e.seen.String()
}

func (e *downloadError) Unwrap() error { return e.err }

// transient reports whether the same download may succeed the next time.
func (e *downloadError) transient() bool {
	var refused *statusError
	if errors.As(e.err, &refused) {
		return refused.status >= 500 || refused.status == http.StatusTooManyRequests || refused.status == http.StatusRequestTimeout
	}
	return !errors.Is(e.err, errNoRelease) && !errors.Is(e.err, errNoList)
}

func (e *downloadError) hint() string {
	var refused *statusError
	switch {
	case errors.Is(e.err, errNoRelease):
		return "change the constraint, or install a matching engine where the agent finds it"
	case errors.As(e.err, &refused):
		return "the mirror refuses this address: check that it has the version, and engines.terraformMirror, engines.tofuMirror or engines.terragruntMirror in holdfast.yaml (or --terraform-mirror, --tofu-mirror, --terragrunt-mirror)"
	case errors.Is(e.err, errNoList):
		return "the mirror lists no releases at its address: check engines.terraformMirror, engines.tofuMirror or engines.terragruntMirror in holdfast.yaml (or --terraform-mirror, --tofu-mirror, --terragrunt-mirror)"
	}
	return "check that the mirror is reachable, or install a matching engine where the agent finds it"
}
