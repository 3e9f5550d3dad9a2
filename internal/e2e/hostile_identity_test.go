package e2e_test

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
)

const issuerURL = "https://holdfast.example.com"

// useIssuer has runs prove to clouds who they are, by tokens that are renewed after five seconds.
// The returned party trusts the server's public listener.
func useIssuer(w *world) (trust func() *relyingparty.Party) {
	w.t.Helper()
	w.set(settings{
		"server.issuer.url": issuerURL, "server.issuer.lifetime": "10s",
		"credentials": []any{
			map[string]any{"project": "shop", "phase": "plan", "aws": map[string]any{"roleARN": "arn:aws:iam::123456789012:role/plan"}},
			map[string]any{
				"project": "shop", "phase": "apply", "aws": map[string]any{"roleARN": "arn:aws:iam::123456789012:role/apply"},
				"azure": map[string]any{"tenantID": "11111111-1111-1111-1111-111111111111", "clientID": "22222222-2222-2222-2222-222222222222"},
			},
		},
	})
	return func() *relyingparty.Party {
		at, err := url.Parse(w.hooks)
		if err != nil {
			w.t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
		return relyingparty.New(w.t, issuerURL, proxy)
	}
}

// saidInAPlan is code that shows what the token of its run says, and whether there is one of
// applies.
const saidInAPlan = `
locals {
  part  = try(split(".", file("/identity/aws.token"))[1], "")
  plain = replace(replace(local.part, "-", "+"), "_", "/")
  said  = try(jsondecode(base64decode("${local.plain}${substr("===", 0, (4 - length(local.plain) % 4) % 4)}")), { sub = "nobody", aud = "nobody" })
}

resource "terraform_data" "who" {
  input = "${local.said.sub} to ${local.said.aud}, azure: ${try(file("/identity/azure.token"), "denied")}"
}
`

// Runs have tokens of their phase and no others, in a sandbox that nobody else sees: for the
// audience that the configuration names, renewed while an apply lasts, and in no log.
func TestRunsProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	needRoot(w)
	trust := useIssuer(w)
	w.start()
	party := trust()

	plan := w.fleet().open(join(document("alpha"), files{"infra/alpha/main.tf": saidInAPlan}))
	plan.untilPlanned("1 to create")
	planned := func(cluster string) string {
		t.Helper()
		_, body := w.get(w.api + "/api/v1/runs/" + w.newest(cluster, holdfast.RunPlan).ID + "/plan")
		return body
	}
	if said := planned("alpha"); !strings.Contains(said, `"after":"holdfast:shop:production:plan to sts.amazonaws.com, azure: denied"`) {
		t.Errorf("the plan is %s", said)
	}

	// An apply that lasts until its token was renewed, and then asks for others.
	script := strings.NewReplacer("OUT", w.witness("token"), "GATE", w.witness("beta.gate"), "\n", " ").Replace(`umask 0;
cat "$AWS_WEB_IDENTITY_TOKEN_FILE"; cp "$AWS_WEB_IDENTITY_TOKEN_FILE" OUT.1;
n=0; while cmp -s OUT.1 "$AWS_WEB_IDENTITY_TOKEN_FILE" && [ $n -lt 6000 ]; do sleep 0.05; n=$((n+1)); done;
cp "$AWS_WEB_IDENTITY_TOKEN_FILE" OUT.2;
at="${ARM_OIDC_REQUEST_URL#http://}"; host="${at%%/*}"; path="/${at#*/}";
ask() { exec 3<>"/dev/tcp/${host%:*}/${host#*:}";
printf 'GET %s HTTP/1.0\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n' "$1" "$host" "$2" >&3; cat <&3; exec 3>&-; };
ask "$path" "$ARM_OIDC_REQUEST_TOKEN" >OUT.3;
ask "${path%%\?*}?audience=sts.amazonaws.com" "$ARM_OIDC_REQUEST_TOKEN" >OUT.4;
echo "$AWS_ROLE_ARN" >OUT.5; (echo x >"$AWS_WEB_IDENTITY_TOKEN_FILE") 2>/dev/null && echo written >OUT.6;
touch OUT.done; n=0; while [ ! -e GATE ] && [ $n -lt 6000 ]; do sleep 0.05; n=$((n+1)); done`)
	module := strings.Replace(workModule, "command = var.script", `command = var.script
    interpreter = ["bash", "-c"]`, 1)
	apply := w.fleet().open(workerWith("beta", "1", script, module))
	apply.untilPlanned("2 to create")
	apply.merge()
	w.until("the apply has its second token", func() (bool, string) {
		_, err := os.Stat(w.witness("token.done"))
		return err == nil, w.agentLog()
	})
	read := func(n string) string {
		t.Helper()
		data, err := os.ReadFile(w.witness("token." + n))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	first, second := read("1"), read("2")
	got, err := party.Verify(t.Context(), "sts.amazonaws.com", second)
	if err != nil || first == second {
		t.Fatalf("renewed token: %v", err)
	}
	for name, want := range map[string]any{
		"sub": "holdfast:shop:production:apply", "phase": "apply", "kind": "apply", "cluster": "beta", "repository": "acme/fleet",
		"ref": "refs/heads/main", "runner": "local", "iss": issuerURL,
	} {
		if got[name] != want {
			t.Errorf("claim %s = %v, want %v", name, got[name], want)
		}
	}
	if role := read("5"); role != "arn:aws:iam::123456789012:role/apply" {
		t.Errorf("role = %q", role)
	}
	if _, err := os.Stat(w.witness("token.6")); err == nil {
		t.Error("the engine can write its token's file")
	}
	azure := read("3")
	_, body, _ := strings.Cut(azure, `"value":"`)
	token, _, _ := strings.Cut(body, `"`)
	if got, err := party.Verify(t.Context(), "api://AzureADTokenExchange", token); err != nil || got.Subject() != "holdfast:shop:production:apply" {
		t.Errorf("Azure's token %.200q: %v", azure, err)
	}
	if refused := read("4"); !strings.Contains(refused, " 403 ") || strings.Contains(refused, "eyJ") {
		t.Errorf("another audience: %.200q", refused)
	}

	// While it is there, the code of another run looks for it.
	found := findFiles(t, w.path("data"), "aws.token")
	if len(found) == 0 {
		t.Fatal("there is nothing to steal")
	}
	thief := w.fleet().open(join(document("gamma"), files{"infra/gamma/main.tf": `resource "terraform_data" "loot" {
  input = try(filebase64("` + found[0] + `"), "denied")
}
`}))
	thief.untilPlanned("1 to create")
	if loot := planned("gamma"); !strings.Contains(loot, `"path":"input","after":"denied"`) {
		t.Errorf("the code of another run found %s", loot)
	}
	w.openGate("beta")
	apply.untilApplied()
	w.untilIdle()
	if left := findFiles(t, w.path("data"), "aws.token"); len(left) != 0 {
		t.Errorf("tokens are left: %v", left)
	}
	said := w.everythingSaid()
	if !strings.Contains(said["/api/v1/audit"], "token.issue") || !strings.Contains(said["/metrics"], `holdfast_identity_tokens_total{kind="aws",phase="apply",refused=""}`) {
		t.Error("tokens are neither on record nor counted")
	}
	for place, text := range said {
		for _, secret := range []string{first, second, token} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a token", place)
			}
		}
	}
}

// findFiles returns the files of a name below a folder.
func findFiles(t *testing.T, dir, name string) (found []string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Name() == name {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// The documents that clouds read are those of the listener that they reach, and of no other.
func TestTheIssuersDocumentsArePublic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	useIssuer(w)
	w.start()
	for path, want := range map[string]int{
		w.hooks + "/.well-known/openid-configuration": http.StatusOK, w.hooks + "/.well-known/jwks.json": http.StatusOK,
		w.api + "/.well-known/jwks.json": http.StatusNotFound,
	} {
		if status, body := w.get(path); status != want || want == http.StatusOK && !strings.Contains(body, "RS256") {
			t.Errorf("GET %s = %d %s, want %d", path, status, body, want)
		}
	}
	keys := func() string {
		_, body := w.get(w.hooks + "/.well-known/jwks.json")
		return body
	}
	before := keys()
	w.stop()
	w.start()
	if after := keys(); after != before {
		t.Errorf("keys after a restart = %s, want %s", after, before)
	}
}
