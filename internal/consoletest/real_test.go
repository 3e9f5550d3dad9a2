package consoletest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeport"
)

const module = `resource "terraform_data" "node" {
  count = 3
  input = "blue"
}
output "endpoint" { value = "https://example.com" }
`

// server starts the binary that users have, with a repository of three clusters, and
// returns its address and its first token.
func server(t *testing.T) (url, token string) {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{dir, filepath.Dir(dir)} { // agents of a server that is root are other users
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	binary, repository := filepath.Join(dir, "holdfast"), filepath.Join(dir, "fleet")
	command(t, "../..", "go", "build", "-trimpath", "-ldflags=-w", "-o", binary, "./cmd/holdfast")
	write(t, filepath.Join(repository, "modules", "nodes", "main.tf"), module)
	for _, name := range []string{"blue", "green", "red"} {
		write(t, filepath.Join(repository, "clusters", name+".yaml"), "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: "+name+"}\nspec:\n  project: shop\n  environment: test\n  module: {path: modules/nodes}\n")
	}
	command(t, repository, "git", "init", "-q", "-b", "main", ".")
	commit(t, repository)
	public, api := fmt.Sprintf("127.0.0.1:%d", freeport.Of(t)), fmt.Sprintf("127.0.0.1:%d", freeport.Of(t))
	write(t, filepath.Join(dir, "holdfast.yaml"), "dataDir: data\nisolation: none\nserver:\n  public: {address: \""+public+"\"}\n  api: {address: \""+api+"\"}\nrepositories:\n  - name: fleet\n    url: fleet\n    clusters: [\"clusters/*.yaml\"]\n")
	serve := exec.Command(binary, "serve", "--config", "holdfast.yaml")
	serve.Dir = dir
	log, err := os.Create(filepath.Join(dir, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	serve.Stdout, serve.Stderr = log, log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Signal(os.Interrupt)
		_ = serve.Wait()
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the server's log: %s", said)
		}
	})
	for range 600 {
		if data, err := os.ReadFile(filepath.Join(dir, "data", "admin.token")); err == nil && len(data) > 0 {
			return "http://" + api, strings.TrimSpace(string(data))
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the server made no token")
	return "", ""
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func commit(t *testing.T, repository string) {
	t.Helper()
	command(t, repository, "git", "add", "-A")
	command(t, repository, "git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "change")
}

// TestRealServer signs in at the binary that users have, sees its first plans appear without
// a reload, reads one with its log, and signs out.
func TestRealServer(t *testing.T) {
	url, token := server(t)
	tab := open(t, looks["wide light"])
	var address, plan, log, who string
	var cookies []*network.Cookie
	run(t, tab, retried(url+"/settings"), chromedp.WaitReady("input[name=token]", chromedp.ByQuery), chromedp.Location(&address))
	if !strings.Contains(address, "/login?next=%2Fsettings") {
		t.Errorf("a stranger is at %s", address)
	}
	run(t, tab, chromedp.SendKeys("input[name=token]", "wrong", chromedp.ByQuery), chromedp.Submit("input[name=token]", chromedp.ByQuery),
		chromedp.WaitReady("#failed", chromedp.ByQuery), chromedp.SendKeys("input[name=token]", token, chromedp.ByQuery),
		chromedp.Submit("input[name=token]", chromedp.ByQuery), chromedp.WaitReady("#suspended", chromedp.ByQuery), chromedp.Text(".who .name", &who, chromedp.ByQuery),
		chromedp.ActionFunc(func(ctx context.Context) (err error) { cookies, err = network.GetCookies().Do(ctx); return err }))
	if who != "admin" {
		t.Errorf("signed in as %q", who)
	}
	for _, cookie := range cookies {
		if strings.HasPrefix(cookie.Name, "__Host-") && (!cookie.HTTPOnly || !cookie.Secure) {
			t.Errorf("cookie %s can be read or sent where it must not", cookie.Name)
		}
	}
	tab.Complaints() // of the token that was wrong: 401
	run(t, tab, chromedp.Navigate(url+"/"), until(`document.querySelector('[data-live].live').dataset.state === 'live'`), until(`document.getElementById('c-blue')`),
		until(`document.querySelectorAll('#needs-panel [data-row] .button').length > 0`),
		chromedp.Click(`#needs-panel [data-row] .button`, chromedp.ByQuery), until(`location.pathname.startsWith('/runs/') || location.pathname.startsWith('/clusters/')`))
	run(t, tab, chromedp.Navigate(url+"/clusters/blue?tab=runs"), until(`document.querySelector('[data-row] [data-open]')`),
		chromedp.Click(`[data-row] [data-open]`, chromedp.ByQuery), until(`document.querySelector('.changes')`),
		chromedp.Text("#plan + .right, .panel .changes", &plan, chromedp.ByQuery), until(`document.querySelector('#log li')`), chromedp.Text("#log", &log, chromedp.ByQuery))
	if !regexp.MustCompile(`terraform_data\.\s*node`).MatchString(strings.ReplaceAll(plan, "\u200b", "")) && !strings.Contains(plan, "add") {
		t.Errorf("plan = %q", plan)
	}
	if log == "" {
		t.Error("no log")
	}
	run(t, tab, chromedp.Click(`form[action="/logout"] button`, chromedp.ByQuery), chromedp.WaitReady("input[name=token]", chromedp.ByQuery),
		chromedp.Navigate(url+"/"), chromedp.WaitReady("input[name=token]", chromedp.ByQuery))
	for _, one := range tab.Complaints() {
		t.Errorf("the browser says: %s", one)
	}
}

// retried opens a page of a server that is starting.
func retried(url string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) (err error) {
		for range 300 {
			if err = chromedp.Navigate(url).Do(ctx); err == nil {
				return nil
			}
			if err := chromedp.Sleep(100 * time.Millisecond).Do(ctx); err != nil {
				return err
			}
		}
		return err
	})
}
