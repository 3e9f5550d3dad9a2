// Package apicheck holds requests to the API, and its answers, to their description, for
// tests.
package apicheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// Answer is what came back for a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Check returns in what an answer of the API is not as it is described; nil for one that
// is, and for paths that are not the API's.
func Check(method, address string, answer Answer) error {
	at, err := url.Parse(address)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(at.Path, "/api/v1/") {
		return nil
	}
	media, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	if answer.Status/100 != 2 {
		if media != v1.ProblemType {
			return fmt.Errorf("%d is answered with %q, not with a problem", answer.Status, media)
		}
		var problem v1.Problem
		if json.Unmarshal(answer.Body, &problem) == nil && (problem.Status != answer.Status || problem.Code() == "" || problem.Instance != at.EscapedPath() && problem.Instance != at.Path) {
			return fmt.Errorf("problem %+v is not that of %d %s", problem, answer.Status, at.Path)
		}
		return validate("#/components/schemas/Problem", answer.Body, false)
	}
	op, path, ok := find(method, at.Path)
	switch {
	case !ok:
		return fmt.Errorf("%s %s is not described", method, at.Path)
	case op.Media != "":
		if media != op.Media {
			return fmt.Errorf("media type %q, described is %q", media, op.Media)
		}
		return nil
	case media != "application/json":
		return fmt.Errorf("media type %q, described is JSON", media)
	case answer.Status != op.Status && (op.ID != "command" || answer.Status != http.StatusAccepted):
		return fmt.Errorf("status %d, described is %d", answer.Status, op.Status)
	}
	return validate(
		operationAt(method, path)+"/responses/"+fmt.Sprint(answer.Status)+"/content/application~1json/schema", answer.Body, at.Query().Has("fields"),
	)
}

// CheckRequest returns in what a request to the API is not as it is described; nil for one
// that is, and for paths that are not the API's.
func CheckRequest(method, address string, body []byte) error {
	at, err := url.Parse(address)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(at.Path, "/api/v1/") {
		return nil
	}
	op, path, ok := find(method, at.Path)
	if !ok {
		return fmt.Errorf("%s %s is not described", method, at.Path)
	}
	described := op.Parameters()
	for name := range at.Query() {
		if !slices.Contains(described, name) {
			return fmt.Errorf("the parameter %q is not described", name)
		}
	}
	text := string(bytes.TrimSpace(body))
	switch {
	case text == "":
		return nil
	case op.Body == nil && text != "{}":
		return fmt.Errorf("a body is not described: %s", text)
	case op.Body == nil:
		return nil
	}
	return validate(operationAt(method, path)+"/requestBody/content/application~1json/schema", body, false)
}

// Success is the status with which an operation that succeeds answers.
func Success(method, path string) int {
	if op, _, ok := find(method, path); ok {
		return op.Status
	}
	return http.StatusOK
}

// operationAt is where the description has an operation.
func operationAt(method, path string) string {
	return "#/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace("/api/v1"+path) + "/" + strings.ToLower(method)
}

// find returns the operation of a path. One without parameters goes before others.
func find(method, path string) (op v1.Operation, template string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/api/v1"), "/")
	for _, candidate := range v1.Operations() {
		wanted := strings.Split(candidate.Path, "/")
		if candidate.Method != method || len(wanted) != len(parts) {
			continue
		}
		matches, plain := true, true
		for i, part := range wanted {
			parameter := strings.HasPrefix(part, "{")
			plain = plain && !parameter
			matches = matches && (parameter || part == parts[i])
		}
		if matches && (!ok || plain) {
			op, template, ok = candidate, candidate.Path, true
		}
	}
	return op, template, ok
}

var (
	mu       sync.Mutex
	compiled = map[string]*jsonschema.Schema{}
)

// validate holds a body to a part of the description: every field in it has to be
// described. In part, fields may be missing.
func validate(pointer string, body []byte, part bool) error {
	schema, err := schemaOf(pointer, part)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return schema.Validate(value)
}

func schemaOf(pointer string, part bool) (*jsonschema.Schema, error) {
	mu.Lock()
	defer mu.Unlock()
	key := fmt.Sprint(pointer, part)
	if schema, ok := compiled[key]; ok {
		return schema, nil
	}
	description, err := jsonschema.UnmarshalJSON(bytes.NewReader(v1.OpenAPI()))
	if err != nil {
		return nil, err
	}
	strict(description, part)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := errors.Join(compiler.AddResource("openapi.json", description)); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile("openapi.json" + pointer)
	if err != nil {
		return nil, err
	}
	compiled[key] = schema
	return schema, nil
}

// strict allows objects no fields but those that are described.
func strict(value any, part bool) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value["properties"]; ok && value["type"] == "object" {
			value["additionalProperties"] = false
			if part && value["description"] != nil {
				delete(value, "required")
			}
		}
		for _, child := range value {
			strict(child, part)
		}
	case []any:
		for _, child := range value {
			strict(child, part)
		}
	}
}
