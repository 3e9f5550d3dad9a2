package decode

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
)

// The least that an engine starts with.
const (
	minMemory    = 64 << 20 // bytes
	minProcesses = 32
	minCPU       = 0.01
)

// RunLimits reads the mapping as what an engine may use; a key that is absent is zero.
// Absent says how to have no limit.
func (o *Object) RunLimits(absent string) (l holdfast.RunLimits) {
	if n := o.Get("memory"); n != nil {
		size, ok := parseSize(n)
		switch {
		case !ok:
			o.reader.Add(n, fmt.Sprintf("%s must be a size, not %s", o.Label("memory"), Describe(n)), "such as 512MiB or 8GiB")
		case size < minMemory:
			o.reader.Add(n, o.Label("memory")+" must be at least 64MiB", absent)
		default:
			l.Memory = size
		}
	}
	if n := o.Get("processes"); n != nil {
		number, err := strconv.Atoi(n.Value)
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil:
			o.reader.Add(n, fmt.Sprintf("%s must be a whole number, not %s", o.Label("processes"), Describe(n)), "such as 2048")
		case number < minProcesses:
			o.reader.Add(n, o.Label("processes")+" must be at least 32", absent)
		default:
			l.Processes = number
		}
	}
	if n := o.Get("cpu"); n != nil {
		number, err := strconv.ParseFloat(n.Value, 64)
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float" || err != nil || math.IsInf(number, 0) || math.IsNaN(number):
			o.reader.Add(n, fmt.Sprintf("%s must be a number, not %s", o.Label("cpu"), Describe(n)), "such as 2 or 0.5")
		case number < minCPU:
			o.reader.Add(n, o.Label("cpu")+" must be at least 0.01", absent)
		default:
			l.CPU = number
		}
	}
	o.Done()
	return l
}

// parseSize reads a number of bytes with its unit, such as 512MiB.
func parseSize(n *yaml.Node) (size int64, ok bool) {
	if n.Kind != yaml.ScalarNode {
		return 0, false
	}
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if number, found := strings.CutSuffix(n.Value, suffix); found {
			unit := int64(1) << (10 * (i + 1))
			size, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			return size * unit, err == nil && size >= 0 && size <= math.MaxInt64/unit
		}
	}
	return 0, false
}
