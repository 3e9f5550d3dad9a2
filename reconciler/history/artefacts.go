package history

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Artefacts are what runs leave behind; *datastore.Store has them.
type Artefacts interface {
	// Artefact opens what a run's last attempt that stored it under name left.
	Artefact(ctx context.Context, run, name string) (io.ReadCloser, error)
}

// Plan reads the plan that a run made; ErrNotFound if it was not kept, or is not a plan.
func Plan(ctx context.Context, from Artefacts, run string) (holdfast.Plan, error) {
	data, err := Artefact(ctx, from, run, protocol.ArtefactPlan)
	if err != nil {
		return holdfast.Plan{}, err
	}
	var plan holdfast.Plan
	if err := json.Unmarshal(data, &plan); err != nil {
		return plan, fmt.Errorf("decode plan of run %s: %w: %w", run, holdfast.ErrNotFound, err) // another try would not mend it
	}
	return plan, nil
}

// Artefact reads what a run left behind under a name; ErrNotFound if there
// is nothing.
func Artefact(ctx context.Context, from Artefacts, run, name string) ([]byte, error) {
	file, err := from.Artefact(ctx, run, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read %s of run %s: %w", name, run, err)
	}
	return data, nil
}
