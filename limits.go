package holdfast

import "strconv"

// RunLimits bound what an engine may use, together with all that it starts. Zero
// means no limit.
type RunLimits struct {
	Memory    int64   `json:"memory,omitempty"`    // bytes
	Processes int     `json:"processes,omitempty"` // and threads
	CPU       float64 `json:"cpu,omitempty"`       // processors
}

// Beyond returns the first of the limits that is more than most allows, as its key
// in a document, and what is allowed. A zero in most allows everything; the key is
// empty if all is allowed.
func (l RunLimits) Beyond(most RunLimits) (key, allowed string) {
	switch {
	case most.Memory > 0 && l.Memory > most.Memory:
		return "memory", sizeText(most.Memory)
	case most.Processes > 0 && l.Processes > most.Processes:
		return "processes", strconv.Itoa(most.Processes)
	case most.CPU > 0 && l.CPU > most.CPU:
		return "cpu", strconv.FormatFloat(most.CPU, 'g', -1, 64)
	}
	return "", ""
}

// sizeText writes a number of bytes with the largest unit that has no fraction.
func sizeText(bytes int64) string {
	for _, unit := range []string{"", "KiB", "MiB", "GiB"} {
		if bytes%1024 != 0 {
			return strconv.FormatInt(bytes, 10) + unit
		}
		bytes /= 1024
	}
	return strconv.FormatInt(bytes, 10) + "TiB"
}
