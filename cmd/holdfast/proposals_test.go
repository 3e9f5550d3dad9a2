package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// TestProposalsSayWhatIsTyped: values go to the server as they are typed, whatever else YAML may
// read them as; what asks for nothing asks no server.
func TestProposalsSayWhatIsTyped(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{answers: map[string]any{"POST /proposals": v1.ProposedCluster{Repo: "shop", Path: "clusters/web.yaml"}}}
	srv := api.serve(t)
	defer srv.Close()
	env := map[string]string{"HOLDFAST_SERVER": srv.URL, "HOLDFAST_TOKEN": "token"}
	args := []string{"update", "cluster", "web", "--dry-run", "--spec", "region=x"}
	var want []string
	for _, typed := range []string{"day=2001-01-01", "version=1.10", "id=12345678901234567890", "ports={80: web}", "yes=yes", "zip=0123", "gone=", `note="a: b"`} {
		args, want = append(args, "--set", typed), append(want, "variables."+typed)
	}
	got := holdfastCLI(t, env, args...)
	body := strings.NewReplacer(`\"`, `"`).Replace(strings.Join(api.asked, ""))
	if got.code != 0 || !strings.Contains(body, `"set":["`+strings.Join(want, `","`)+`","region=x"]`) {
		t.Errorf("%+v asks for %s", got, body)
	}
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte("kind: Cluster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := len(api.asked)
	for line, want := range map[string]string{
		"update cluster web":                     "there is nothing to change",
		"update runner eu":                       "there is nothing to change",
		"create cluster web":                     "needs --template",
		"create runner eu":                       "needs --type",
		"create cluster web -f nowhere.yaml":     "read document",
		"update cluster web --set size":          "want NAME=VALUE",
		"update cluster web --set size=[":        "not valid YAML",
		"update cluster web --set =1 -f " + file: "want NAME=VALUE",
	} {
		if got := holdfastCLI(t, env, strings.Fields(line)...); got.code == 0 || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
	if len(api.asked) != asked {
		t.Errorf("asked for %q", api.asked[asked:])
	}
	if got := holdfastCLI(t, env, "create", "cluster", "web", "-f", file, "--dry-run"); got.code != 0 || !strings.Contains(api.asked[asked], `"document":"kind: Cluster\n"`) {
		t.Errorf("%+v asks for %q", got, api.asked[asked:])
	}
}
