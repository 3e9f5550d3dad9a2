package document

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
)

// The least that an engine starts with.
const (
	minMemory    = 64 << 20 // bytes
	minProcesses = 32
	minCPU       = 0.01
)

// limits reads what the engine of a cluster's runs may use. Whether it may be as
// much is for the server's configuration to say.
func (r clusterReader) limits(o *decode.Object, c *holdfast.Cluster) {
	const noLimit = "leave it out for the server's own limit"
	if n := o.Get("memory"); n != nil {
		size, ok := parseSize(n)
		switch {
		case !ok:
			r.Add(n, fmt.Sprintf("spec.limits.memory must be a size, not %s", decode.Describe(n)), "such as 512MiB or 8GiB")
		case size < minMemory:
			r.Add(n, "spec.limits.memory must be at least 64MiB", noLimit)
		default:
			c.Limits.Memory = size
		}
	}
	if n := o.Get("processes"); n != nil {
		number, err := strconv.Atoi(n.Value)
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil:
			r.Add(n, fmt.Sprintf("spec.limits.processes must be a whole number, not %s", decode.Describe(n)), "such as 2048")
		case number < minProcesses:
			r.Add(n, "spec.limits.processes must be at least 32", noLimit)
		default:
			c.Limits.Processes = number
		}
	}
	if n := o.Get("cpu"); n != nil {
		number, err := strconv.ParseFloat(n.Value, 64)
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float" || err != nil || math.IsInf(number, 0) || math.IsNaN(number):
			r.Add(n, fmt.Sprintf("spec.limits.cpu must be a number, not %s", decode.Describe(n)), "such as 2 or 0.5")
		case number < minCPU:
			r.Add(n, "spec.limits.cpu must be at least 0.01", noLimit)
		default:
			c.Limits.CPU = number
		}
	}
	o.Done()
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
