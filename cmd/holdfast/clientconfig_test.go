package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

func TestClientConfig(t *testing.T) {
	t.Parallel()
	seen := ""
	f := &fakeAPI{answers: map[string]any{"GET /runs": answering(func(r *http.Request) any {
		seen = r.Header.Get("Authorization")
		return list[v1.Run]()
	})}}
	srv := f.serve(t)
	defer srv.Close()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", "server: "+srv.URL+"/\ntoken: from-file\n", 0o600)
	write("token", "from-token-file\n", 0o600)
	for _, tc := range []struct {
		name  string
		env   map[string]string
		args  []string
		token string // as it arrives; empty: it fails with err
		err   string
	}{
		{name: "file", env: map[string]string{"HOLDFAST_CLIENT_CONFIG": good}, token: "from-file"},
		{name: "environment wins", env: map[string]string{"HOLDFAST_CLIENT_CONFIG": good, "HOLDFAST_TOKEN": "from-env"}, token: "from-env"},
		{
			name: "flag wins", env: map[string]string{"HOLDFAST_CLIENT_CONFIG": good, "HOLDFAST_TOKEN": "from-env"},
			args: []string{"--token-file", filepath.Join(dir, "token")}, token: "from-token-file",
		},
		{name: "token file beside", env: map[string]string{"HOLDFAST_CLIENT_CONFIG": write("beside.yaml", "server: "+srv.URL+"\ntokenFile: token\n", 0o600)}, token: "from-token-file"},
		{name: "same server by flag", env: map[string]string{"HOLDFAST_CLIENT_CONFIG": good}, args: []string{"--server", srv.URL}, token: "from-file"},
		{name: "another server by flag", env: map[string]string{"HOLDFAST_CLIENT_CONFIG": good}, args: []string{"--server", "https://other.example"}, err: "no token is configured for https://other.example"},
		{name: "no file", env: map[string]string{"HOME": dir}, err: "no server is configured"},
		{name: "named file missing", env: map[string]string{"HOLDFAST_CLIENT_CONFIG": dir + "/none"}, err: "no such file"},
		{name: "readable by others", env: map[string]string{"HOLDFAST_CLIENT_CONFIG": write("open.yaml", "token: x", 0o644)}, err: "can be read by other users (mode 0644)\nHint:  chmod 600"},
		{name: "token readable by the group", args: []string{"--token-file", write("group", "x", 0o640)}, err: "(mode 0640)"},
		{name: "empty token", args: []string{"--token-file", write("empty", " \n", 0o600)}, err: "is empty"},
		{name: "unknown key", env: map[string]string{"HOLDFAST_CLIENT_CONFIG": write("key.yaml", "tokn: s3cret", 0o600)}, err: "it has an unexpected format"},
		{name: "no address", env: map[string]string{"HOLDFAST_SERVER": "localhost:80", "HOLDFAST_TOKEN": "t"}, err: "is not an address"},
		{name: "password in the address", env: map[string]string{"HOLDFAST_SERVER": "http://u:s3cret@h", "HOLDFAST_TOKEN": "t"}, err: "contains a user or password"},
		{name: "nobody there", env: map[string]string{"HOLDFAST_SERVER": "http://127.0.0.1:1", "HOLDFAST_TOKEN": "t"}, err: "reach server http://127.0.0.1:1: dial tcp"},
	} {
		seen = ""
		got := holdfastCLI(t, tc.env, append([]string{"get", "runs"}, tc.args...)...)
		switch {
		case tc.token != "" && (got.code != 0 || seen != "Bearer "+tc.token):
			t.Errorf("%s: %d %q %s, want token %s", tc.name, got.code, seen, got.err, tc.token)
		case tc.err != "" && (got.code == 0 || !strings.Contains(got.err, tc.err)):
			t.Errorf("%s: %d %s, want %q", tc.name, got.code, got.err, tc.err)
		case strings.Contains(got.err, "s3cret"):
			t.Errorf("%s: the error shows a secret: %s", tc.name, got.err)
		}
	}
}
