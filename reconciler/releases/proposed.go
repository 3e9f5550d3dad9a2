package releases

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// Proposed are the released templates, with one as a pull request has
// it, whatever its version.
type Proposed struct {
	Released   templates.Versions
	Name, Repo string
	Tree       holdfast.Tree
	Dir        string
}

// Version implements templates.Versions.
func (p Proposed) Version(ctx context.Context, name, version string) (templates.TemplateVersion, error) {
	if name != p.Name {
		return p.Released.Version(ctx, name, version)
	}
	return templates.TemplateVersion{Repo: p.Repo, Tree: p.Tree, Dir: p.Dir}, nil
}
