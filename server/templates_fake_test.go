package server_test

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rollout"
)

func (w *world) Templates(_ context.Context, name string) ([]rollout.TemplateStatus, error) {
	w.note("templates %q", name)
	if w.failWith != nil {
		return nil, w.failWith
	}
	found := slices.DeleteFunc(slices.Clone(w.templates), func(s rollout.TemplateStatus) bool { return name != "" && s.Name != name })
	if name != "" && len(found) == 0 {
		return nil, holdfast.ErrNotFound
	}
	return found, nil
}

func (w *world) Upgrade(_ context.Context, req rollout.UpgradeRequest) ([]rollout.Upgrade, error) {
	w.note("upgrade %v %v all=%t template=%q to=%q by %s", req.Clusters, req.Labels, req.All, req.Template, req.To, req.Actor)
	if len(w.upgrades) == 0 {
		return nil, &holdfast.RefusedError{Text: "nothing is behind"}
	}
	return w.upgrades, nil
}
