package report

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestDifferentLossesLookDifferent: instances of a resource share a line only if the same
// happens to them for the same cause.
func TestDifferentLossesLookDifferent(t *testing.T) {
	t.Parallel()

	loss := func(address string) holdfast.ResourceChange {
		return holdfast.ResourceChange{
			Address: address, Type: "aws_subnet", Provider: "registry.terraform.io/hashicorp/aws", Action: holdfast.ActionReplace,
			ReplacePaths: []string{"a", "b", "c", `tags["x y"]`, strings.Repeat("long", 30)},
		}
	}
	one, other := loss("aws_subnet.a[0]"), loss("aws_subnet.a[1]")
	if lines := lossLines([]holdfast.ResourceChange{one, other}); !strings.Contains(lines, "`aws_subnet.a[0–1]` (2)") {
		t.Errorf("the same losses are shown as %s", lines)
	}
	for name, change := range map[string]func(c *holdfast.ResourceChange){
		"action":             func(c *holdfast.ResourceChange) { c.Action = holdfast.ActionDelete },
		"provider":           func(c *holdfast.ResourceChange) { c.Provider = "registry.example.com/hashicorp/aws" },
		"former address":     func(c *holdfast.ResourceChange) { c.PreviousAddress = "aws_subnet.b" },
		"import":             func(c *holdfast.ResourceChange) { c.Importing = "subnet-1" },
		"what becomes of it": func(c *holdfast.ResourceChange) { c.Forgets = true },
		"reason":             func(c *holdfast.ResourceChange) { c.Reason = "replace_because_tainted" },
		"fourth path":        func(c *holdfast.ResourceChange) { c.ReplacePaths[3] = `tags["x  y"]` },
		"end of a path":      func(c *holdfast.ResourceChange) { c.ReplacePaths[4] += "er" },
		"number of paths":    func(c *holdfast.ResourceChange) { c.ReplacePaths = c.ReplacePaths[:4] },
		"name":               func(c *holdfast.ResourceChange) { c.Address = "aws_subnet.b[1]" },
	} {
		other := loss("aws_subnet.a[1]")
		change(&other)
		if lines := lossLines([]holdfast.ResourceChange{one, other}); strings.Count(lines, "\n") != 2 {
			t.Errorf("losses of another %s are shown as %s", name, lines)
		}
	}
	for _, change := range []func(c *holdfast.ResourceChange){
		func(c *holdfast.ResourceChange) { c.Forgets = true },
		func(c *holdfast.ResourceChange) { c.PreviousAddress = "aws_subnet.b" },
		func(c *holdfast.ResourceChange) { c.ReplacePaths = []string{`tags["x  y"]`} },
	} {
		other := loss("aws_subnet.a[0]")
		other.ReplacePaths = []string{`tags["x y"]`}
		was := lossLines([]holdfast.ResourceChange{other})
		change(&other)
		if lines := lossLines([]holdfast.ResourceChange{other}); lines == was {
			t.Errorf("another loss is shown as %s, too", lines)
		}
	}
	if cell := whyCell(one); !strings.HasSuffix(cell, "`c` **forces replacement**<br>2 more") {
		t.Errorf("paths are cut without saying so: %s", cell)
	}
}
