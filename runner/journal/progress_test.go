package journal_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-dev/holdfast/runner/journal"
)

// A key of for_each may look like other words of an engine. What a provisioner prints may
// look like an address, and is not.
func TestProgressReadsAddresses(t *testing.T) {
	t.Parallel()
	long := `cloud_network.b["` + strings.Repeat("x", 5000) + `"]`
	for name, c := range map[string]struct {
		output string
		active []string
		done   []string
	}{
		"plain":                       {"cloud_network.a: Creating...\n", []string{"cloud_network.a"}, nil},
		"in modules":                  {`module.m["a b"].module.n[0].cloud_network.a[1]: Modifying... [id=1]` + "\n", []string{`module.m["a b"].module.n[0].cloud_network.a[1]`}, nil},
		"like a provisioner":          {`cloud_network.b["web (eu): 1"]: Creating...` + "\n", []string{`cloud_network.b["web (eu): 1"]`}, nil},
		"like one, without blanks":    {`cloud_network.b["(eu):"]: Creating...` + "\n", []string{`cloud_network.b["(eu):"]`}, nil},
		"like one, in quotes":         {`cloud_network.b["\"] (eu): 1"]: Creating...` + "\n", []string{`cloud_network.b["\"] (eu): 1"]`}, nil},
		"like one, done":              {`cloud_network.b["web (eu): 1"]: Creation complete after 1s [id=1]` + "\n", nil, []string{`cloud_network.b["web (eu): 1"]: created`}},
		"like the end of another":     {`cloud_network.b["x: Creation complete"]: Creating...` + "\n", []string{`cloud_network.b["x: Creation complete"]`}, nil},
		"an id like a beginning":      {"cloud_network.a: Destroying... [id=x: Creating...]\n", []string{"cloud_network.a"}, nil},
		"deposed":                     {"cloud_network.a (deposed object 0123abcd): Destroying... [id=1]\n", []string{"cloud_network.a (deposed object 0123abcd)"}, nil},
		"long":                        {long + ": Creating...\n", []string{long}, nil},
		"of a form that is not known": {"cloud_network.a{1}(2): Creating...\n", []string{"cloud_network.a{1}(2)"}, nil},
		"a provisioner":               {"null_resource.a (local-exec): x.y: Creating...\n", nil, nil},
		"of one with a key":           {`null_resource.a["b (c): d"] (remote-exec): x.y: Creation complete after 1s` + "\n", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var notes []string
			progress := journal.NewProgress(func(line string) { notes = append(notes, line) })
			_, _ = progress.Write([]byte(c.output))
			again := journal.NewProgress(nil)
			_, _ = again.Write([]byte(strings.Join(append(notes, ""), "\n")))
			for what, p := range map[string]*journal.Progress{"it": progress, "who reads what was noted": again} {
				if diff := cmp.Diff(c.active, p.Addresses(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s is at (-want +got):\n%s", what, diff)
				}
				if diff := cmp.Diff(c.done, p.Completed(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s has done (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}
