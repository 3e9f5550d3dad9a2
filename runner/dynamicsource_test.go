//go:build !race

package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestSourceThatDependsOnValues: what OpenTofu makes of a module's source is
// prepared for these values only. Terraform refuses it.
func TestSourceThatDependsOnValues(t *testing.T) {
	t.Parallel()
	_, name := realEngine(t)
	e, _ := newRealExecutor(t)
	states := newStateServer(t)
	for i, flavour := range []string{"a", "b", "a"} {
		s := newMemorySession(map[string]string{
			"root/main.tf": `
terraform {
  backend "http" {}
}
variable "flavour" { type = string }
module "m" { source = "../mod-${var.flavour}" }
output "it" { value = module.m.it }
`,
			"root/cluster.auto.tfvars.json": fmt.Sprintf("{\"flavour\": %q}", flavour),
			"mod-a/main.tf":                 "output \"it\" { value = \"made by a\" }\n",
			"mod-b/main.tf":                 "output \"it\" { value = \"made by b\" }\n",
		})
		s.state = states.URL + "/x"
		a := engineAssignment(fmt.Sprintf("run-%d", i), holdfast.RunPlan)
		a.Dir, a.Bundle = "root", holdfast.DigestOf([]byte(flavour))
		got := e.Execute(t.Context(), a, s)
		if name == "terraform" {
			wantStatus(t, got, holdfast.RunErrored, "InvalidConfiguration", s)
			continue
		}
		wantStatus(t, got, holdfast.RunPlanned, "", s)
		if log := s.logged(); !strings.Contains(log, "made by "+flavour) || strings.Contains(log, "Initializing modules") != (i < 2) {
			t.Errorf("with %s it says:\n%s", flavour, log)
		}
	}
}
