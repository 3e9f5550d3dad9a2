package ecs

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for name, test := range map[string]struct {
		limits, ask holdfast.RunLimits
		want        size
		fails       bool
	}{
		"no limits":        {want: size{1024, 4096}},
		"the usual ones":   {limits: holdfast.RunLimits{Memory: 4 * gib}, want: size{1024, 5120}},
		"small":            {limits: holdfast.RunLimits{Memory: gib / 4, CPU: 0.25}, want: size{256, 512}},
		"none in between":  {limits: holdfast.RunLimits{Memory: gib + gib/8, CPU: 0.25}, want: size{256, 2048}},
		"memory decides":   {limits: holdfast.RunLimits{Memory: 8 * gib, CPU: 0.5}, want: size{2048, 9216}},
		"steps of 4 GiB":   {limits: holdfast.RunLimits{Memory: 31 * gib}, want: size{8192, 32768}},
		"the cluster asks": {limits: holdfast.RunLimits{Memory: 4 * gib}, ask: holdfast.RunLimits{Memory: gib, CPU: 2}, want: size{2048, 4096}},
		"too many cores":   {limits: holdfast.RunLimits{CPU: 17}, fails: true},
		"too much memory":  {limits: holdfast.RunLimits{Memory: 120 * gib}, fails: true},
	} {
		got, err := sizeFor(test.limits, test.ask)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
