package durable

import (
	"os"
	"strings"
)

// Boot names the present life of the machine: what was not synced may be lost when it ends.
// Empty where the system does not say.
func Boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
