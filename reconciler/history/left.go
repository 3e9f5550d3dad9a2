package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Left returns what applies of a cluster that died may have created, as
// decision.MayExist has it from the record, the runs and what these have left.
func Left(
	ctx context.Context, from Artefacts, rec holdfast.ClusterRecord, runs []holdfast.Run,
) (left holdfast.Leftover, err error) {
	read := func(addresses func(context.Context, Artefacts, string) ([]string, error)) func(string) ([]string, bool) {
		return func(run string) ([]string, bool) {
			list, failed := addresses(ctx, from, run)
			if failed != nil && !errors.Is(failed, holdfast.ErrNotFound) {
				err = errors.Join(err, failed)
			}
			return list, failed == nil
		}
	}
	left = decision.MayExist(rec, runs, decision.Evidence{Creates: read(created), Holds: read(held)})
	return left, err
}

// created are the addresses that the plan of a run creates, in place of others or not.
func created(ctx context.Context, from Artefacts, run string) ([]string, error) {
	plan, err := Plan(ctx, from, run)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, change := range plan.Changes {
		if change.Action == holdfast.ActionCreate || change.Action == holdfast.ActionReplace {
			addresses = append(addresses, change.Address)
		}
	}
	return addresses, nil
}

// held are the addresses that were in the state when a run had ended.
func held(ctx context.Context, from Artefacts, run string) ([]string, error) {
	data, err := Artefact(ctx, from, run, protocol.ArtefactResources)
	if err != nil {
		return nil, err
	}
	var resources []holdfast.Resource
	if err := json.Unmarshal(data, &resources); err != nil {
		return nil, fmt.Errorf("decode resources of run %s: %w: %w", run, holdfast.ErrNotFound, err) // another try would not mend it
	}
	addresses := make([]string, len(resources))
	for i, resource := range resources {
		addresses[i] = resource.Address
	}
	return addresses, nil
}
