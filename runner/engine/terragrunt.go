// Terragrunt, which is only used to render root modules.

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// Terragrunt is the name of its binary.
const Terragrunt = "terragrunt"

// terragruntVersionFile is read by tenv and by those who use Terragrunt without it.
const terragruntVersionFile = ".terragrunt-version"

// ChooseTerragrunt returns the newest installed Terragrunt of the versions that fit the unit in
// dir, a folder of the bundle, otherwise a downloaded one.
func (s *Store) ChooseTerragrunt(ctx context.Context, versions, dir, bundle string) (Binary, error) {
	c, err := terragruntConstraint(versions, dir, bundle)
	if err != nil {
		return Binary{}, &failure.Error{Cause: holdfast.CauseInvalidConfiguration, Err: err}
	}
	if !c.possible(Terragrunt) {
		return Binary{}, &failure.Error{
			Cause: holdfast.CauseInvalidConfiguration, Err: fmt.Errorf("no version of terragrunt can satisfy %s", c.words),
			Hint: "change terragrunt_version_constraint, or " + terragruntVersionFile,
		}
	}
	seen := s.installed(ctx, Terragrunt)
	if err := ctx.Err(); err != nil {
		return Binary{}, err
	}
	if best, ok := seen.newest(Terragrunt, c); ok {
		return best, nil
	}
	if silent := seen.silentOf(Terragrunt); len(silent) > 0 {
		return Binary{}, Fault(&silentEngineError{silent}, false)
	}
	if !s.opts.Sources.Download {
		return Binary{}, &failure.Error{
			Cause: holdfast.CauseNoEngine, Err: fmt.Errorf("no terragrunt fits %s; %s", c.words, seen.String()),
			Hint: "install a matching Terragrunt where the agent finds it, or allow downloads in the runner's configuration",
		}
	}
	found, err := s.download(ctx, Terragrunt, c)
	var failed *downloadError
	if errors.As(err, &failed) {
		failed.seen = seen
	}
	if err != nil {
		return Binary{}, Fault(err, false)
	}
	return found, nil
}

// terragruntConstraint is what the unit, and the nearest version file above it in the bundle,
// ask for.
func terragruntConstraint(versions, dir, bundle string) (constraint, error) {
	file, err := modulecode.Parse(filepath.Join(dir, "terragrunt.hcl"))
	if file == nil {
		return constraint{}, fmt.Errorf("read terragrunt.hcl: %w", err)
	}
	asked := []string{versions}
	if attributes, _ := file.Body.JustAttributes(); attributes != nil {
		if text := modulecode.StringAttribute(attributes["terragrunt_version_constraint"]); text != "" {
			asked = append(asked, text)
		}
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := firstOf(filepath.Join(at, terragruntVersionFile))
		if err == nil && text != "" {
			asked = append(asked, text)
			break
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return constraint{}, fmt.Errorf("read %s: %w", terragruntVersionFile, err)
		}
		if at == bundle || len(at) <= len(bundle) {
			break
		}
	}
	var c constraint
	for _, text := range asked {
		if strings.HasPrefix(text, "latest") { // what tenv would look up: the newest that fits is used
			continue
		}
		list, err := version.NewConstraint(text)
		if err != nil {
			return constraint{}, fmt.Errorf("version of terragrunt %q: %w", text, err)
		}
		c.list = append(c.list, list...)
		c.words = strings.TrimPrefix(c.words+", "+text, ", ")
	}
	return c, nil
}

// firstOf returns the first line of a small file.
func firstOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<10))
	return strings.TrimSpace(firstLine(string(data))), err
}

var terragruntVersion = regexp.MustCompile(`\bv?(\d+\.\d+\.\d+[-+.0-9A-Za-z]*)`)

// askTerragrunt starts a binary of Terragrunt to learn its version, in an empty folder.
func askTerragrunt(ctx context.Context, path string, env map[string]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "holdfast-version-")
	if err != nil {
		return "", fmt.Errorf("make an empty folder: %w", err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + env["PATH"], "HOME=" + env["HOME"]}
	answer, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("no answer in %s: %w", probeTimeout, ctx.Err())
	} else if err != nil {
		return "", err
	}
	found := terragruntVersion.FindSubmatch(answer)
	if found == nil {
		return "", errNoVersion
	}
	return string(found[1]), nil
}
