package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/policy"
)

// readPlan reads a plan document, or what an engine says of a plan. What policies know
// besides is what the file has at its key holdfast, if it has one.
func readPlan(name string) (policy.Input, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return policy.Input{}, fmt.Errorf("read plan: %w", err)
	}
	var head struct {
		FormatVersion string          `json:"format_version"`
		Version       json.RawMessage `json:"version"`
		Changes       json.RawMessage `json:"resource_changes"`
		Holdfast      json.RawMessage `json:"holdfast"`
	}
	notPlan := hint.New(fmt.Errorf("%s is not a plan", name), "write it with terraform show -json PLANFILE, or tofu show -json PLANFILE")
	if err := json.Unmarshal(data, &head); err != nil {
		return policy.Input{}, notPlan
	}
	var about policy.Context
	if head.Holdfast != nil {
		dec := json.NewDecoder(bytes.NewReader(head.Holdfast))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&about); err != nil {
			return policy.Input{}, fmt.Errorf("read %s: holdfast: %w", name, err)
		}
	}
	var in policy.Input
	switch {
	case head.FormatVersion != "" || head.Changes != nil:
		in, err = policy.ReadInput(bytes.NewReader(data), about)
	case head.Version != nil:
		in, err = readDocument(data, about)
	default:
		return policy.Input{}, notPlan
	}
	if err != nil {
		return policy.Input{}, fmt.Errorf("read %s: %w", name, err)
	}
	return in, nil
}

// readDocument reads a plan document, with or without a key of ours next to its own.
func readDocument(data []byte, about policy.Context) (policy.Input, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return policy.Input{}, errors.New("it is not JSON")
	}
	delete(parts, "holdfast")
	bare, err := json.Marshal(parts)
	if err != nil {
		return policy.Input{}, err
	}
	doc, err := plandoc.Decode(bytes.NewReader(bare))
	if err != nil {
		return policy.Input{}, err
	}
	return policy.FromDocument(doc, about)
}

// readFixtures reads the plans for tests that are next to policies: each by the name of its
// file.
func readFixtures(folders []string) (map[string]policy.Input, error) {
	all := map[string]policy.Input{}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(folder, fixturesDir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read fixtures: %w", err)
		}
		for _, entry := range entries {
			name, isJSON := strings.CutSuffix(entry.Name(), ".json")
			if entry.IsDir() || !isJSON {
				continue
			}
			if _, taken := all[name]; taken {
				return nil, fmt.Errorf("there are two fixtures %s", name)
			}
			in, err := readPlan(filepath.Join(folder, fixturesDir, entry.Name()))
			if err != nil {
				return nil, err
			}
			all[name] = in
		}
	}
	return all, nil
}
