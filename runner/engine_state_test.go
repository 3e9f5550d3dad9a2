package runner_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestEngineThatDidNotWriteTheState: a state from elsewhere is taken over by the
// engine that wrote it, or by the one that the document names.
func TestEngineThatDidNotWriteTheState(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil) // terraform
	state := func(version, provider string) string {
		return fmt.Sprintf(`{"version": 4, "terraform_version": %q, "resources": [{"provider": "provider[\"%s\"]"}]}`, version, provider)
	}
	for name, c := range map[string]struct {
		state      string
		named, pin string
		own, fault bool
	}{
		"OpenTofu's":          {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), fault: true},
		"in a module":         {state: strings.Replace(state("1.12.6", "registry.opentofu.org/hashicorp/aws"), "provider[", "module.a.provider[", 1), fault: true},
		"and named":           {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), named: "terraform"},
		"and applied here":    {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), pin: "terraform"},
		"in our backend":      {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), own: true},
		"Terraform's":         {state: state("1.11.4", "registry.terraform.io/hashicorp/aws")},
		"before OpenTofu":     {state: state("1.5.7", "registry.opentofu.org/hashicorp/aws")},
		"of nothing that is":  {state: state("1.12.6", "terraform.io/builtin/terraform")},
		"not there":           {},
		"that is not a state": {state: "{"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemorySession(map[string]string{"main.tf": "", "pulled": c.state, "prior": cmp.Or(c.state, `{"version": 4}`), "fake": "state print pulled\n"})
			s.state = "http://127.0.0.1:1/x"
			a := engineAssignment("run-"+strings.NewReplacer(" ", "-", "'", "").Replace(name), holdfast.RunPlan)
			a.OwnState, a.Engine.Name = c.own, c.named
			if c.pin != "" {
				a.PinName, a.PinVersion = c.pin, "1.9.9"
			}
			got := e.Execute(t.Context(), a, s)
			if c.state == "{" {
				wantStatus(t, got, holdfast.RunErrored, "UnreadablePlan", s)
				return
			}
			if !c.fault {
				wantStatus(t, got, holdfast.RunPlanned, "", s)
				return
			}
			wantStatus(t, got, holdfast.RunErrored, "InvalidConfiguration", s)
			if f := got.Failure; !strings.Contains(f.Summary, "written by tofu") || !strings.Contains(f.Hint, "spec.engine.name to tofu to keep") {
				t.Errorf("failure %+v", f)
			}
			if strings.Contains(s.logged(), "hashicorp/aws") {
				t.Error("the state is in the log")
			}
		})
	}
}
