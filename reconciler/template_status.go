package reconciler

import (
	"context"

	"github.com/holdfast-dev/holdfast"
)

// Templates returns the templates that the repositories publish.
func (r *Reconciler) Templates(context.Context, string) ([]holdfast.TemplateStatus, error) {
	return nil, holdfast.ErrNotFound
}
