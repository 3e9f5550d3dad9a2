//go:build !race

package runner_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

const ephemeralRoot = `
terraform {
  required_providers {
    cloud = { source = "holdfast-dev/cloud" }
  }
}
provider "cloud" { folder = "WORLD" }
ephemeral "cloud_token" "made" { name = "opened" }
resource "cloud_cluster" "web" {
  name  = "web"
  size  = SIZE
  token = ephemeral.cloud_token.made.value
}
resource "terraform_data" "told" {
  triggers_replace = [SIZE]
  provisioner "local-exec" {
    command     = "echo $TOKEN >>WORLD/told"
    environment = { TOKEN = ephemeral.cloud_token.made.value }
  }
}
`

// TestEphemeralResources: values that differ each time that they are opened, and are in
// no plan, change nothing of what is compared: what was shown is applied, nothing is
// left to do, and nothing that is kept has them.
func TestEphemeralResources(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cloud")
	root := func(size string) map[string]string {
		return map[string]string{"main.tf": strings.ReplaceAll(ephemeralRoot, "SIZE", size)}
	}
	for _, size := range []string{"3", "4"} {
		planned, _ := l.run("plan-"+size, holdfast.RunPlan, root(size), nil)
		l.want(planned, "plan-"+size, holdfast.RunPlanned, "")
		applied, _ := l.run("apply-"+size, holdfast.RunApply, root(size), func(a *protocol.Assignment) { a.Reviews = review("plan-"+size, planned) })
		l.want(applied, "apply-"+size, holdfast.RunApplied, "")
		if applied.PlanDigest != planned.PlanDigest {
			t.Errorf("size %s: plan %s was shown, %s applied", size, planned.PlanDigest, applied.PlanDigest)
		}
	}
	same, _ := l.run("drift-1", holdfast.RunDrift, root("4"), nil)
	l.want(same, "drift-1", holdfast.RunNoChanges, "")

	told, err := os.ReadFile(filepath.Join(l.world, "told"))
	if err != nil {
		t.Fatal(err)
	}
	tokens := regexp.MustCompile(`opened-[A-Z0-9]+`).FindAllString(string(told), -1)
	var object struct{ Token string }
	if data, err := os.ReadFile(filepath.Join(l.world, "cloud_cluster.web.json")); err != nil || json.Unmarshal(data, &object) != nil {
		t.Fatalf("read the object: %v: %s", err, data)
	}
	if len(tokens) != 2 || tokens[0] == tokens[1] || object.Token != tokens[1] {
		t.Fatalf("provisioners were given %v, the object %q: want two, of which the object has the last", tokens, object.Token)
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	for name, data := range l.server.objects {
		if strings.Contains(string(data), "opened-") {
			t.Errorf("%s has a value that is ephemeral", name)
		}
	}
	for id, data := range l.server.logs {
		if strings.Contains(string(data), "opened-") {
			t.Errorf("the log of %s has a value that is ephemeral:\n%s", id, data)
		}
	}
}
