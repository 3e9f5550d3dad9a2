package config

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// Size is a number of bytes.
type Size int64

var sizeType = reflect.TypeFor[Size]()

// isolationAuto is the isolation that each mode has but none.
const isolationAuto = "auto"

// Isolations are the words for isolation, the weakest last.
var Isolations = []string{isolationAuto, "slots", "range", "user-namespace", "landlock", "users", "none"} //nolint:gochecknoglobals // a constant list

// IsolationModes returns the modes that are an isolation's, strong ones first: every one
// but none for auto, every one for none, otherwise the mode of that name and the stronger
// ones.
func IsolationModes(isolation string) []sandbox.Mode {
	modes := sandbox.Modes()
	if isolation == isolationAuto {
		return slices.DeleteFunc(modes, func(m sandbox.Mode) bool { return m == sandbox.ModeNone })
	}
	return modes[:slices.Index(modes, sandbox.Mode(isolation))+1]
}

// size reads a number of bytes, such as 512MiB.
func (d *decoder) size(node *yaml.Node, path string, v reflect.Value) {
	if !d.is(node, path, yaml.ScalarNode, "a size such as 512MiB or 4GiB") {
		return
	}
	number, unit := strings.TrimSpace(node.Value), int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = strings.TrimSpace(rest), 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit || n != 0 && unit == 1 {
		d.add(node, path, fmt.Sprintf("%q is not a size", node.Value), "such as 512MiB or 4GiB")
		return
	}
	v.SetInt(n * unit)
}

// data is the folder of the server's data, before paths are resolved too.
func (c *Config) data() string {
	if filepath.IsAbs(c.DataDir) {
		return filepath.Clean(c.DataDir)
	}
	return filepath.Join(c.dir, c.DataDir)
}
