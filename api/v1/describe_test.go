package v1_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// TestDescription makes the description again: what is embedded must be that.
func TestDescription(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(describe(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(v1.OpenAPI()), string(got)); diff != "" {
		t.Errorf("openapi.json is not that of the types: go test ./api/v1 -update (-embedded +made):\n%s", diff)
	}
}

type object map[string]any

// describer makes schemas of types and of what their source says of them.
type describer struct {
	docs    map[string]string // by type, and by type and field
	types   map[string]reflect.Type
	values  map[string][]string // of types that are words
	schemas object
}

func describe(t *testing.T) object {
	t.Helper()
	d := &describer{docs: map[string]string{}, types: map[string]reflect.Type{}, values: map[string][]string{}, schemas: object{}}
	d.read(t, ".")
	for _, dir := range []string{"../..", "../../outgoing", "../../proposals", "../../protocol", "../../rollout", "../../runnerspec", "../../statelock"} {
		d.read(t, dir)
	}
	paths := object{}
	for _, op := range v1.Operations() {
		path := "/api/v1" + op.Path
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(op.Method)] = d.operation(op)
	}
	d.schema(reflect.TypeFor[v1.Problem]())
	d.schema(reflect.TypeFor[v1.Event]())
	problem := object{"description": "A problem.", "content": object{v1.ProblemType: object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Holdfast", "version": "v1",
			"description": "The API of a Holdfast server: see docs/api.md. Fields and operations are added, and clients ignore those that they do not know; none is renamed or removed within v1.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"security": []object{{"token": []string{}}},
		"paths":    paths,
		"components": object{
			"schemas":         d.schemas,
			"responses":       object{"Problem": problem},
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "A token of server.api.tokens. Tokens can be bound to projects: objects of other projects do not exist for them."}},
		},
	}
}

// read takes in the comments and the words of a package.
func (d *describer) read(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		prefix := parsed.Name.Name + "."
		for _, decl := range parsed.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range gen.Specs {
					d.take(prefix, gen, spec)
				}
			}
		}
	}
}

func (d *describer) take(prefix string, gen *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		d.docs[prefix+spec.Name.Name] = text(gen.Doc)
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, field := range fields.Fields.List {
			for _, name := range field.Names {
				said := text(field.Doc)
				if said == "" {
					said = text(field.Comment)
				}
				d.docs[prefix+spec.Name.Name+"."+name.Name] = said
			}
		}
	case *ast.ValueSpec:
		typ, ok := spec.Type.(*ast.Ident)
		if !ok || len(spec.Values) != 1 {
			return
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			name := prefix + typ.Name
			d.values[name] = append(d.values[name], strings.Trim(literal.Value, `"`))
		}
	}
}

// text is a comment in one line.
func text(group *ast.CommentGroup) string { return strings.Join(strings.Fields(group.Text()), " ") }

func (d *describer) operation(op v1.Operation) object {
	var content object
	switch {
	case op.Media != "":
		content = object{op.Media: object{"schema": object{"type": "string"}}}
	case op.List:
		content = object{"application/json": object{"schema": object{
			"type": "object", "required": []string{"items"}, "properties": object{
				"items": object{"type": "array", "items": d.schema(op.Answer)},
				"next":  object{"type": "string", "description": d.docs["v1.List.Next"]},
			},
		}}}
	default:
		content = object{"application/json": object{"schema": d.schema(op.Answer)}}
	}
	status := fmt.Sprint(op.Status)
	out := object{
		"operationId": op.ID, "summary": op.Summary, "description": "Requires the role " + op.Role() + ".",
		"responses": object{
			status:    object{"description": op.Summary + ".", "content": content},
			"default": object{"$ref": "#/components/responses/Problem"},
		},
	}
	if op.ID == "command" {
		out["responses"].(object)["202"] = out["responses"].(object)["200"]
	}
	var parameters []object
	for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(op.Path, -1) {
		parameters = append(parameters, object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	if op.Query != nil {
		parameters = append(parameters, d.parameters(op.Query)...)
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if op.Body != nil {
		out["requestBody"] = object{
			"required": op.ID != "suspendCluster" && op.ID != "resumeCluster" && op.ID != "pushState",
			"content":  object{"application/json": object{"schema": d.schema(op.Body)}},
		}
	}
	return out
}

func (d *describer) parameters(t reflect.Type) []object {
	var out []object
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			out = append(out, d.parameters(field.Type)...)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("query"), ",")
		parameter := object{
			"name": name, "in": "query", "description": d.docs["v1."+t.Name()+"."+field.Name], "schema": d.schema(field.Type),
		}
		if options == "required" {
			parameter["required"] = true
		}
		if name == "fields" {
			parameter["style"], parameter["explode"] = "form", false
		}
		out = append(out, parameter)
	}
	return out
}

func (d *describer) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.String:
		return d.word(t)
	case reflect.Struct:
		return d.structure(t)
	default: // anything
		return object{}
	}
}

// word is a schema of a text. One of its own type is described apart, with its words.
func (d *describer) word(t reflect.Type) object {
	if t.PkgPath() == "" {
		return object{"type": "string"}
	}
	d.name(t)
	name := t.Name()
	if t == reflect.TypeFor[runnerspec.Type]() { // a description has no packages
		name = "RunnerType"
	}
	if _, ok := d.schemas[name]; !ok {
		said := d.docs[filepath.Base(packageName(t))+"."+t.Name()]
		schema := object{"type": "string", "description": strings.Replace(said, t.Name(), name, 1)}
		if values := d.values[packageName(t)+"."+t.Name()]; len(values) > 0 && name != "Reason" {
			// Examples, not an enumeration: words are added.
			schema["examples"] = values
		}
		d.schemas[name] = schema
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// name notes which type has a name: two of one name would be one schema.
func (d *describer) name(t reflect.Type) {
	if other, ok := d.types[t.Name()]; ok && other != t {
		panic(fmt.Sprintf("%v and %v are of one name", t, other))
	}
	d.types[t.Name()] = t
}

func packageName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.String(), ".")
	return name
}

func (d *describer) structure(t reflect.Type) object {
	if t.Name() == "" {
		return object{"type": "object"}
	}
	d.name(t)
	if _, ok := d.schemas[t.Name()]; !ok {
		schema := object{"type": "object", "description": d.docs["v1."+t.Name()]}
		d.schemas[t.Name()] = schema // before its fields: relations have relations
		properties, required := object{}, []string{}
		d.fields(t, properties, &required)
		schema["properties"] = properties
		if len(required) > 0 {
			schema["required"] = required
		}
	}
	return object{"$ref": "#/components/schemas/" + t.Name()}
}

func (d *describer) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			d.fields(field.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		schema := d.schema(field.Type)
		if said := d.docs["v1."+t.Name()+"."+field.Name]; said != "" {
			schema["description"] = said
		}
		properties[name] = schema
		if options == "" {
			*required = append(*required, name)
		}
	}
	slices.Sort(*required)
}
