package document_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// BenchmarkDriftDue is one pass over 10,000 clusters.
func BenchmarkDriftDue(b *testing.B) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("cluster-%d", i)
	}
	last := time.Date(2026, 11, 21, 15, 7, 0, 0, time.UTC)
	for name, settings := range map[string]holdfast.DriftSettings{
		"utc":    {Schedule: "0 */4 * * *"},
		"berlin": {Schedule: "30 2 * * 1-5", TimeZone: "Europe/Berlin"},
		"yearly": {Schedule: "0 0 29 2 *", TimeZone: "Asia/Tokyo"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, name := range names {
					document.DriftDue(settings, "", name, last)
				}
			}
		})
	}
}

func BenchmarkHidesAttribute(b *testing.B) {
	rule := holdfast.DriftRule{Address: "module.*.aws_eks_node_group.*", Attribute: "scaling_config[*].desired_size", Reason: "autoscaler"}
	for b.Loop() {
		document.HidesAttribute(rule, time.Time{}, `module.kubernetes.aws_eks_node_group.this["workers"]`, "scaling_config[0].desired_size")
	}
}
