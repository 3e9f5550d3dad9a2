package main

import (
	"encoding/json"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// replaces are the arguments whose change replaces a resource, by its type. The
// text of each says where that is written.
type replaces map[string]map[string]string

func readReplaces(name string) replaces {
	data, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	var all replaces
	if err := json.Unmarshal(data, &all); err != nil {
		log.Fatal(err)
	}
	return all
}

// changed returns the arguments that a plan changes and that replace the
// resource. What is made or destroyed is not replaced.
func (r replaces) changed(typ string, prior, planned tftypes.Value) []*tftypes.AttributePath {
	if prior.IsNull() || planned.IsNull() {
		return nil
	}
	var out []*tftypes.AttributePath
	for name := range r[typ] {
		path := pathOf(name)
		before, _, errBefore := tftypes.WalkAttributePath(prior, path)
		after, _, errAfter := tftypes.WalkAttributePath(planned, path)
		if errBefore != nil || errAfter != nil {
			continue // the block is not there
		}
		if !before.(tftypes.Value).Equal(after.(tftypes.Value)) {
			out = append(out, path)
		}
	}
	return out
}

func pathOf(name string) *tftypes.AttributePath {
	path := tftypes.NewAttributePath()
	for step := range strings.SplitSeq(name, ".") {
		if i, err := strconv.Atoi(step); err == nil {
			path = path.WithElementKeyInt(i)
		} else {
			path = path.WithAttributeName(step)
		}
	}
	return path
}
