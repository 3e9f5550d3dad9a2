package document

import (
	"strconv"
	"sync"
	"weak"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/templates/decode"
)

// writtenFile is a file as it was written. Places are asked for only when
// something is wrong, and take many times the room of the text: they are found
// again then, and forgotten when nobody has asked for a while.
type writtenFile struct {
	path string
	text []byte

	mu    sync.Mutex
	found weak.Pointer[[]*place]
}

// places returns the places of each document.
func (f *writtenFile) places() []*place {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.found.Value(); known != nil {
		return *known
	}
	roots, _ := decode.Parse(f.path, f.text)
	places := make([]*place, len(roots))
	for i, root := range roots {
		r := &decode.Reader{File: f.path}
		if root = r.Expand(root); len(r.Faults) == 0 {
			places[i] = placesOf(root, root)
		}
	}
	f.found = weak.Make(&places)
	return places
}

// place is where a key and its value are, 1-based, and the places below.
type place struct {
	keyLine, keyColumn, line, column int32

	below map[string]*place
}

func placesOf(key, value *yaml.Node) *place {
	p := &place{keyLine: int32(key.Line), keyColumn: int32(key.Column), line: int32(value.Line), column: int32(value.Column)}
	switch {
	case len(value.Content) == 0:
	case value.Kind == yaml.SequenceNode:
		p.below = make(map[string]*place, len(value.Content))
		for i, item := range value.Content {
			p.below[strconv.Itoa(i)] = placesOf(item, item)
		}
	case value.Kind == yaml.MappingNode:
		p.below = make(map[string]*place, len(value.Content)/2)
		for i := 0; i+1 < len(value.Content); i += 2 {
			p.below[value.Content[i].Value] = placesOf(value.Content[i], value.Content[i+1])
		}
	}
	return p
}
