package attempt

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
)

// outputs reads and keeps the output values. That it cannot does not make an
// apply undone, so it is only logged.
func (t *applying) outputs(ctx context.Context) {
	t.begin(stepOutputs)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), artefactTimeout)
	defer cancel()
	raw := journal.NewBounded(maxOutputs)
	err := t.start(ctx, raw, true, "output", "-json", "-no-color")
	var values map[string]struct {
		Sensitive bool            `json:"sensitive"`
		Value     json.RawMessage `json:"value"`
	}
	if err == nil {
		var document []byte
		if document, err = raw.Bytes(); err == nil {
			err = json.Unmarshal(document, &values)
		}
	}
	list := make([]holdfast.Output, 0, len(values))
	for _, output := range values {
		var value any
		if output.Sensitive && jsontree.Decode(output.Value, &value) == nil {
			t.redact.Add(jsontree.AppendStrings(nil, value)...)
		}
	}
	for name, output := range values {
		if !output.Sensitive {
			output.Value = t.redact.JSON(output.Value) // a mark may have been taken off
		}
		list = append(list, holdfast.Output{Name: name, Sensitive: output.Sensitive, Value: output.Value})
	}
	t.log.Release(true)
	slices.SortFunc(list, func(a, b holdfast.Output) int { return strings.Compare(a.Name, b.Name) })
	if err == nil {
		err = t.putJSON(ctx, holdfast.ArtefactOutputs, list)
	}
	if err != nil {
		t.say("the outputs could not be read: %v", err)
		t.logger.WarnContext(ctx, "outputs not kept", "err", t.redact.String(err.Error()))
	}
}

// maxOutputs bounds the output values that are read.
const maxOutputs = 64 << 20
