package runnerdoc

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// New is the document of a runner with nothing but its type.
func New(name string, t holdfast.RunnerType) []byte {
	return fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n  type: %s\n", decode.APIVersion, decode.KindRunner, name, t)
}

// separator begins a document.
const separator = "---"

// parts are the texts of a file's documents, each with the separator before it.
func parts(file []byte) [][]byte {
	var out [][]byte
	begin := 0
	for at, line := 0, []byte(nil); at < len(file); at += len(line) {
		line = file[at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		if at > begin && isSeparator(line) {
			out = append(out, file[begin:at])
			begin = at
		}
	}
	return append(out, file[begin:])
}

func isSeparator(line []byte) bool {
	rest, is := bytes.CutPrefix(line, []byte(separator))
	return is && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// part is which part of a file has the document of a runner.
func part(path string, file []byte, name string) (all [][]byte, at int, err error) {
	all = parts(file)
	for i, text := range all {
		docs, _ := Parse(path, text, false, Options{})
		for _, doc := range docs {
			if doc.Runner != nil && doc.Name() == name {
				return all, i, nil
			}
		}
	}
	return nil, 0, fmt.Errorf("%s has no document of runner %q: %w", path, name, holdfast.ErrNotFound)
}

// Text is the document of a runner as its file has it.
func Text(path string, file []byte, name string) ([]byte, error) {
	all, i, err := part(path, file, name)
	if err != nil {
		return nil, err
	}
	_, text := cutSeparator(all[i])
	return text, nil
}

func cutSeparator(text []byte) (separatorLine, rest []byte) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if !isSeparator(line) {
		return nil, text
	}
	end := min(len(line)+1, len(text))
	return text[:end], text[end:]
}

// Replace puts a document in the place of the one that a runner has.
func Replace(path string, file []byte, name string, document []byte) ([]byte, error) {
	all, i, err := part(path, file, name)
	if err != nil {
		return nil, err
	}
	line, _ := cutSeparator(all[i])
	all[i] = append(bytes.Clone(line), document...)
	return bytes.Join(all, nil), nil
}

// Remove takes out the document of a runner. It returns nil if nothing is left.
func Remove(path string, file []byte, name string) ([]byte, error) {
	all, i, err := part(path, file, name)
	if err != nil {
		return nil, err
	}
	all = append(all[:i:i], all[i+1:]...)
	for _, text := range all {
		if _, rest := cutSeparator(text); len(bytes.TrimSpace(rest)) > 0 {
			return bytes.Join(all, nil), nil
		}
	}
	return nil, nil
}

// Append adds a document to a file, which may be new.
func Append(file, document []byte) []byte {
	if len(bytes.TrimSpace(file)) == 0 {
		return document
	}
	text := bytes.TrimRight(bytes.Clone(file), "\n")
	return append(append(text, "\n"+separator+"\n"...), document...)
}

// Set changes keys below spec of a document, each given as "path.of.keys=value". A value is
// YAML; an empty one removes the key.
func Set(document []byte, changes []string) ([]byte, error) {
	if len(changes) == 0 {
		return document, nil
	}
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, holdfast.Faults{{File: "document", Message: "it is not valid YAML: " + err.Error()}}
	}
	if root.Kind != yaml.DocumentNode || root.Content[0].Kind != yaml.MappingNode {
		return nil, holdfast.Faults{{File: "document", Message: "it is not a mapping"}}
	}
	for _, change := range changes {
		keys, text, ok := strings.Cut(change, "=")
		path := strings.Split(keys, ".")
		if !ok || keys == "" || strings.Contains("."+keys+".", "..") {
			return nil, setFault(change, "write path.of.keys=value, such as job.namespace=runs")
		}
		var value yaml.Node
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return nil, setFault(keys, "its value is not valid YAML: put a text in quotes")
		}
		at := child(root.Content[0], "spec")
		for _, key := range path[:len(path)-1] {
			if at = child(at, key); at.Kind != yaml.MappingNode {
				return nil, setFault(keys, fmt.Sprintf("%s is not a mapping", key))
			}
		}
		if value.Kind == 0 {
			drop(at, path[len(path)-1])
			continue
		}
		*child(at, path[len(path)-1]) = *value.Content[0]
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	return b.Bytes(), encoder.Close()
}

func setFault(change, hint string) error {
	return holdfast.Faults{{File: "set", Message: fmt.Sprintf("%q cannot be set", wording.Clip(change)), Hint: hint}}
}

// child is the value of a key, a new mapping if it is absent or null.
func child(mapping *yaml.Node, key string) *yaml.Node {
	_, value := decode.Lookup(mapping, key)
	if value == nil {
		value = &yaml.Node{Kind: yaml.MappingNode}
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
	} else if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
		*value = yaml.Node{Kind: yaml.MappingNode}
	}
	return value
}

func drop(mapping *yaml.Node, key string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = append(mapping.Content[:i:i], mapping.Content[i+2:]...)
			return
		}
	}
}
