package runner_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner"
)

// sendingSession shows the state that it sends to the engine's plan.
type sendingSession struct {
	*memorySession
	sends string
}

func (s sendingSession) WatchState(saw func([]byte)) {
	s.onStep = func(step string) {
		if step == "plan" {
			saw([]byte(s.sends))
		}
	}
}

// TestEngineThatDidNotWriteTheState: a state from elsewhere is taken over by the
// engine that wrote it, or by the one that the document names.
func TestEngineThatDidNotWriteTheState(t *testing.T) {
	t.Parallel()
	terraform, _ := engineExecutor(t, nil)
	both, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { // of which tofu goes first
		bin := t.TempDir()
		installEngine(t, bin, "tofu")
		o.Engines.Dirs = append(o.Engines.Dirs, bin)
	})
	state := func(version, provider string) string {
		return fmt.Sprintf(`{"version": 4, "terraform_version": %q, "resources": [{"provider": "provider[\"%s\"]"}]}`, version, provider)
	}
	for name, c := range map[string]struct {
		state      string
		named, pin string
		own, fault bool
		watched    bool   // the session sees it on its way to the engine
		both       bool   // engines are installed
		other      string // engine that wrote it; empty: tofu
	}{
		"Terraform's, and tofu would be chosen": {state: state("1.11.4", "registry.terraform.io/hashicorp/aws"), both: true, fault: true, other: "terraform"},
		"the same, and tofu is named":           {state: state("1.11.4", "registry.terraform.io/hashicorp/aws"), both: true, named: "tofu"},
		"the same, and terraform is named":      {state: state("1.11.4", "registry.terraform.io/hashicorp/aws"), both: true, named: "terraform"},
		"the same, applied with terraform":      {state: state("1.11.4", "registry.terraform.io/hashicorp/aws"), both: true, pin: "terraform"},
		"OpenTofu's, and tofu is chosen":        {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), both: true},

		"OpenTofu's":          {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), fault: true},
		"in a module":         {state: strings.Replace(state("1.12.6", "registry.opentofu.org/hashicorp/aws"), "provider[", "module.a.provider[", 1), fault: true},
		"and named":           {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), named: "terraform"},
		"and applied here":    {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), pin: "terraform"},
		"in our backend":      {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), own: true, fault: true},
		"seen on its way":     {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), own: true, watched: true, fault: true},
		"there, applied here": {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), own: true, watched: true, pin: "terraform"},
		"there, and named":    {state: state("1.12.6", "registry.opentofu.org/hashicorp/aws"), own: true, watched: true, named: "terraform"},
		"Terraform's":         {state: state("1.11.4", "registry.terraform.io/hashicorp/aws")},
		"before OpenTofu":     {state: state("1.5.7", "registry.opentofu.org/hashicorp/aws")},
		"all of it destroyed": {state: `{"version": 4, "terraform_version": "1.5.7", "resources": []}`, both: true},
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
			e, other := terraform, cmp.Or(c.other, "tofu")
			if c.both {
				e = both
			}
			var session runner.Session = s
			if c.watched {
				session = sendingSession{s, c.state}
			}
			got := e.Execute(t.Context(), a, session)
			if c.state == "{" {
				wantStatus(t, got, holdfast.RunErrored, "UnreadablePlan", s)
				return
			}
			if !c.fault {
				wantStatus(t, got, holdfast.RunPlanned, "", s)
				return
			}
			wantStatus(t, got, holdfast.RunErrored, "InvalidConfiguration", s)
			if f := got.Failure; !strings.Contains(f.Summary, "written by "+other) || !strings.Contains(f.Hint, "spec.engine.name to "+other+" to keep") {
				t.Errorf("failure %+v", f)
			}
			if strings.Contains(s.logged(), "hashicorp/aws") {
				t.Error("the state is in the log")
			}
		})
	}
}
