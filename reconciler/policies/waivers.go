package policies

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/policy"
	"github.com/holdfast-dev/holdfast/policy/waiver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// waiversDir is the folder of a set with documents that waive its policies, and the shipped ones.
const waiversDir = "waivers"

// isWaiver reports whether a file in the folder root of a set has waivers.
func isWaiver(root, name string) bool {
	ext := path.Ext(name)
	return path.Dir(name) == path.Join(root, waiversDir) && (ext == ".yaml" || ext == ".yml")
}

// waiversIn reads the waivers among the files of a set. One that waives what is not there, or
// what nobody may waive, is an error, as is one that cannot be read.
func (r *Reader) waiversIn(sources []protocol.PolicySource) (all []waiver.Waiver, err error) {
	var faults holdfast.Faults
	for _, source := range sources {
		if isWaiver(".", source.Path) {
			found, wrong := waiver.Parse(path.Join(source.From, source.Path), []byte(source.Text))
			all, faults = append(all, found...), append(faults, wrong...)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if len(all) == 0 {
		return nil, nil
	}
	known := make(map[string]holdfast.Policy)
	for _, part := range [][]protocol.PolicySource{r.ours, sources} {
		for _, p := range policy.Compile(part, nil).Policies() {
			known[p.ID] = p
		}
	}
	for _, w := range all {
		switch p, ok := known[w.Policy]; {
		case !ok:
			faults = append(faults, w.Fault(fmt.Sprintf("there is no policy %q", w.Policy), "name one of this folder, or a shipped one"))
		case p.Strict:
			faults = append(faults, w.Fault(fmt.Sprintf("the policy %q says waivable: false", w.Policy), ""))
		}
	}
	return all, faults.Err()
}

// recently is how long after its end a waiver is still named.
const recently = 30 * 24 * time.Hour

// Waivers are the documents that waive policies for a cluster at a time, with those that have
// expired lately. One has to be for each of the cluster's documents.
func (r *Reader) Waivers(ctx context.Context, now time.Time, documents ...holdfast.Cluster) (all []holdfast.PolicyWaiver, err error) {
	sets, _, err := r.located(ctx, documents)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		found, err := r.read(ctx, set.key, set.Set, set.rev)
		if err != nil {
			return nil, fmt.Errorf("policies %s: %w", set.Name, err)
		}
		for _, w := range found.waivers {
			left := w.Until.Sub(now)
			other := func(c holdfast.Cluster) bool { return !w.Is(c) }
			if slices.ContainsFunc(documents, other) || left <= -recently {
				continue
			}
			last := w.Until.AddDate(0, 0, -1).Format(time.DateOnly)
			why := fmt.Sprintf("%s until %s (%s)", w.Reason, last, w.Fault("", "").Position())
			all = append(all, holdfast.PolicyWaiver{
				Waiver: holdfast.Waiver{Waives: w.Policy, Why: why}, By: w.By, Until: last, Expired: left <= 0,
			})
		}
	}
	return all, nil
}
