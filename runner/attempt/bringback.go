// What a plan has made and the apply may have: files that the code or the plan names.

package attempt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// bringBack lays the workspace out again and puts into it the files that the plan has made in the
// folders of the bundle, such as archives that the apply uploads, as far as the code or the plan
// names them. Others, which nobody has reviewed, could be picked up by reviewed programs: a module
// next to a script that is found by its name, or a file in a folder that is gone through.
func (t *applying) bringBack(ctx context.Context) error {
	if err := t.renew(ctx); err != nil {
		return err
	}
	base, err := os.OpenRoot(t.dir)
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	defer base.Close()
	names, err := t.named()
	if err != nil {
		return fmt.Errorf("find out what the plan names: %w", err)
	}
	// HOME is not brought back: what a plan leaves there, such as .gitconfig or
	// .aws/config, would tell programs of the apply what to execute.
	name := filepath.Base(t.bundle)
	m := workspace.Mover{
		Base: base, From: filepath.Join(leftDir, name), To: filepath.Join(filepath.Base(t.work), name), Named: names.Has, Kept: engineReads,
	}
	if err := m.Move(ctx); err != nil {
		return fmt.Errorf("bring back what the plan made: %w", err)
	}
	if m.Left > 0 {
		t.Say("%d files created by the plan are not available to the apply: neither the code nor a value of the plan names them, or they are links that point elsewhere: %s",
			m.Left, strings.Join(m.First, ", "))
	}
	return t.exec.spaces.Discard(filepath.Join(t.dir, leftDir))
}

// engineReads reports whether an engine would read instructions from a file or folder of that name.
func engineReads(name string) bool {
	return modulecode.IsFile(name) || strings.HasSuffix(name, ".tfvars") || strings.HasSuffix(name, ".tfvars.json") ||
		slices.Contains([]string{
			dataDir, engineLockFile, protocol.ArtefactErrored, ".terraformrc", ".tofurc", ".terraform.d", ".terraform-version",
			".opentofu-version", ".config", ".local",
		}, name)
}
