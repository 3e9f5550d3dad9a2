// Engines on this machine, asked for their versions.

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-exec/tfexec"
)

// survey is what was found on this machine.
type survey struct {
	engines []Binary
	silent  []silentEngine
}

// silentEngine is a binary that did not report its version.
type silentEngine struct {
	Binary
	err       error
	transient bool // it was killed, or could not be started: it may answer the next time
}

func (s *survey) add(other survey) {
	s.engines = append(s.engines, other.engines...)
	s.silent = append(s.silent, other.silent...)
}

// silentOf returns the tool's binaries that may answer the next time.
func (s *survey) silentOf(tool string) []silentEngine {
	var list []silentEngine
	for _, e := range s.silent {
		if e.Name == tool && e.transient {
			list = append(list, e)
		}
	}
	return list
}

// newest returns the newest engine of the tool that c allows.
func (s *survey) newest(tool string, c constraint) (best Binary, ok bool) {
	var newest *version.Version
	for _, candidate := range s.engines {
		v, err := version.NewVersion(candidate.Version)
		if candidate.Name == tool && err == nil && c.allows(v) && (newest == nil || v.GreaterThan(newest)) {
			best, newest = candidate, v
		}
	}
	return best, newest != nil
}

// String says what is installed, for people.
func (s *survey) String() string {
	var words []string
	for _, e := range s.engines {
		words = append(words, fmt.Sprintf("%s %s (%s)", e.Name, e.Version, e.Path))
	}
	text := "none is installed"
	if len(words) > 0 {
		text = "installed: " + strings.Join(words, ", ")
	}
	for _, e := range s.silent {
		text += fmt.Sprintf("; %s does not report its version: %s", e.Path, firstLine(e.err.Error()))
	}
	return text
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// silentEngineError says that an engine that may be the right one did not answer.
type silentEngineError struct{ silent []silentEngine }

func (e *silentEngineError) Error() string {
	var words []string
	for _, s := range e.silent {
		words = append(words, fmt.Sprintf("%s does not report its version: %s", s.Path, firstLine(s.err.Error())))
	}
	return strings.Join(words, "; ")
}

const silentEngineHint = "it is asked again with the next attempt; if it never answers, look at the agent's memory, or remove the binary"

// installed returns the tool's binaries on this machine that work, those of
// EngineDirs first, then PATH, then downloads.
func (s *Store) installed(ctx context.Context, tool string) survey {
	var paths []string
	for _, dir := range slices.Concat(s.opts.Sources.Dirs, filepath.SplitList(s.opts.Env["PATH"])) {
		if !filepath.IsAbs(dir) {
			continue // a relative folder would be another one in every workspace
		}
		paths = append(paths, filepath.Join(dir, tool))
	}
	for _, dir := range s.opts.Sources.Dirs {
		plain, _ := filepath.Glob(filepath.Join(dir, "*", tool))
		versioned, _ := filepath.Glob(filepath.Join(dir, tool, "*", tool))
		paths = slices.Concat(paths, plain, versioned)
	}
	downloaded, _ := filepath.Glob(filepath.Join(s.opts.Dir, tool, "*", tool))
	paths = append(paths, downloaded...)
	var found survey
	seen := map[string]bool{}
	for _, path := range paths {
		if seen[path] {
			continue
		}
		seen[path] = true
		answer, err := s.probe(ctx, path)
		switch {
		case err == nil:
			found.engines = append(found.engines, Binary{Name: tool, Version: answer, Path: path})
		case !errors.Is(err, errNoProgram) && ctx.Err() == nil:
			found.silent = append(found.silent, silentEngine{Binary{Name: tool, Path: path}, err, isTransient(err)})
		}
	}
	return found
}

// probe is what a binary answered when it was asked for its version.
type probe struct {
	size    int64
	mtime   time.Time
	version string
}

// probeTimeout bounds how long a binary may take to report its version.
const probeTimeout = 30 * time.Second

// errNoProgram: there is nothing that could be started.
var errNoProgram = errors.New("not a program")

// probe asks a binary for its version, once as long as the file stays the same; callers
// meanwhile get the same answer. That it did not answer is not remembered: the next time
// it may.
func (s *Store) probe(ctx context.Context, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", errNoProgram
	}
	s.mu.Lock()
	known, ok := s.probed[path]
	s.mu.Unlock()
	if ok && known.size == info.Size() && known.mtime.Equal(info.ModTime()) {
		return known.version, nil
	}
	// The first caller may give up, and probeTimeout bounds the question.
	answers := s.asking.DoChan(path, func() (any, error) { return s.ask(context.WithoutCancel(ctx), path, info) })
	select {
	case answer := <-answers:
		text, _ := answer.Val.(string)
		return text, answer.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// ask starts a binary, and remembers its answer for the file that info is of.
func (s *Store) ask(ctx context.Context, path string, info fs.FileInfo) (string, error) {
	answer, err := askVersion(ctx, path, s.opts.Env)
	if err != nil && isTransient(err) && !errors.Is(err, context.DeadlineExceeded) {
		answer, err = askVersion(ctx, path, s.opts.Env)
	}
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "engine does not report its version", "err", fmt.Errorf("ask %s: %w", path, err))
		return "", err
	}
	s.mu.Lock()
	s.probed[path] = probe{size: info.Size(), mtime: info.ModTime(), version: answer}
	s.mu.Unlock()
	return answer, nil
}

// isTransient reports whether a binary that failed with err may answer the next time.
// One that exits, or that this machine cannot execute, says that it is
// not an engine, unless it is a Go program that found no memory or threads.
func isTransient(err error) bool {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		text := err.Error()
		return !exit.Exited() || exit.ExitCode() >= 128 || exit.ExitCode() == 2 && strings.Contains(text, "fatal error: ")
	case errors.Is(err, errNoVersion), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EACCES),
		errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ELOOP):
		return false
	}
	return true
}

var errNoVersion = errors.New("no version in its answer")

// askVersion starts the binary to learn its version. It needs no sandbox: in an
// empty folder an engine executes nothing but itself.
func askVersion(ctx context.Context, path string, env map[string]string) (string, error) {
	if filepath.Base(path) == Terragrunt {
		return askTerragrunt(ctx, path, env)
	}
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
	var exit *exec.ExitError
	var start syscall.Errno
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("no answer in %s: %w", probeTimeout, ctx.Err())
	case errors.As(err, &exit), errors.As(err, &start):
		return "", err
	case err != nil: // it could be started, and ended well
		return "", fmt.Errorf("%w: %w", errNoVersion, err)
	case v == nil:
		return "", errNoVersion
	}
	return v.String(), nil
}
