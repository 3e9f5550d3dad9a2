package serve

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

func TestDescribeForges(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	DescribeForges(&out, &config.Config{
		Datastore: config.Datastore{Blobs: config.Blobs{URL: "s3://holdfast-acme?region=eu-central-1"}},
		Forges:    []config.Forge{{Name: "hub"}, {Name: "ghes", URL: "https://ghe.example.com/"}, {Name: "eu", URL: "https://api.acme.ghe.com/"}},
		Repositories: []config.Repository{
			{Name: "acme/a", Forge: "hub"},
			{Name: "acme/b", Forge: "ghes"},
			{Name: "acme/c", Forge: "eu"},
			{Name: "acme/d", Forge: "ghes", URL: "https://mirror.example.com/d.git"},
			{Name: "acme/e", Forge: "ghes", URL: "git@ghe.example.com:acme/e.git", Auth: config.Auth{SSHKeyFile: "key"}},
			{Name: "plain", Forge: "local", URL: "/srv/plain.git"},
			{Name: "a-release", Forge: "hub", Repository: "Acme/A", Branch: "release"},
		},
	})
	want := `blobs: s3://holdfast-acme?region=eu-central-1
code host hub: API https://api.github.com/
code host ghes: API https://ghe.example.com/api/v3/
code host eu: API https://api.acme.ghe.com/
repository acme/a: https://github.com/acme/a.git
repository acme/b: https://ghe.example.com/acme/b.git
repository acme/c: https://acme.ghe.com/acme/c.git
repository acme/d: https://mirror.example.com/d.git (not on code host ghes: its credential is not sent there; set repositories[].auth)
repository acme/e: git@ghe.example.com:acme/e.git
repository plain: /srv/plain.git
repository a-release: https://github.com/Acme/A.git, statuses holdfast/plan/release and holdfast/apply/release
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOtherBranches(t *testing.T) {
	t.Parallel()
	got := otherBranches([]config.Repository{
		{Name: "fleet", URL: "/srv/fleet.git", Branch: "main"},
		{Name: "fleet-release", URL: "/srv/fleet.git", Branch: "release"},
		{Name: "acme/a", Branch: "main"},
		{Name: "acme/b", Branch: "release"},
	})
	if diff := cmp.Diff(map[string][]string{"fleet": {"release"}, "fleet-release": {"main"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
