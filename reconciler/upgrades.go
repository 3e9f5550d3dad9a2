package reconciler

import (
	"context"

	"github.com/holdfast-dev/holdfast"
)

// Upgrade proposes newer versions at once.
func (r *Reconciler) Upgrade(context.Context, holdfast.UpgradeRequest) ([]holdfast.Upgrade, error) {
	return nil, holdfast.ErrConflict
}
