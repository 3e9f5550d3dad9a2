package gitsource_test

import (
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

func TestFetchSSH(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "it's a repo!.git"))
	head := repo.Commit("main", "first", map[string]string{"a": "1"})
	key, signer := gitserver.NewKey(t)
	other, _ := gitserver.NewKey(t)
	_, stranger := gitserver.NewKey(t)
	server := gitserver.StartSSH(t, signer.PublicKey())
	url := "ssh://git@" + server.Addr + strings.ReplaceAll(repo.Path, " ", "%20")

	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := ssh.MarshalPrivateKey(other, "")
	if err != nil {
		t.Fatal(err)
	}
	var (
		keyFile    = file("key", string(pem.EncodeToMemory(plain)))
		sealedFile = file("sealed", string(pem.EncodeToMemory(sealed)))
		wrongFile  = file("wrong", string(pem.EncodeToMemory(wrong)))
		known      = file("known_hosts", knownhosts.Line([]string{server.Addr}, server.HostKey)+"\n")
		impostor   = file("impostor", knownhosts.Line([]string{server.Addr}, stranger.PublicKey())+"\n")
		nobody     = file("nobody", "")
	)
	tests := map[string]struct {
		url  string
		auth gitsource.SSH
		want error
		word string
	}{
		"a key":                  {auth: gitsource.SSH{KeyFile: keyFile, KnownHostsFile: known}},
		"a key with passphrase":  {auth: gitsource.SSH{KeyFile: sealedFile, Passphrase: "open sesame", KnownHostsFile: known}},
		"a wrong passphrase":     {auth: gitsource.SSH{KeyFile: sealedFile, Passphrase: "open barley", KnownHostsFile: known}, word: "SSH key"},
		"another key":            {auth: gitsource.SSH{KeyFile: wrongFile, KnownHostsFile: known}, want: holdfast.ErrUnauthorized},
		"another host's key":     {auth: gitsource.SSH{KeyFile: keyFile, KnownHostsFile: impostor}, want: holdfast.ErrForbidden},
		"a host nobody knows":    {auth: gitsource.SSH{KeyFile: keyFile, KnownHostsFile: nobody}, want: holdfast.ErrForbidden},
		"no known_hosts":         {auth: gitsource.SSH{KeyFile: keyFile, KnownHostsFile: dir + "/none"}, word: "known_hosts"},
		"no key":                 {auth: gitsource.SSH{KeyFile: dir + "/none", KnownHostsFile: known}, word: "SSH key"},
		"no such repository":     {url: "ssh://" + server.Addr + "/nothing/here", auth: gitsource.SSH{KeyFile: keyFile, KnownHostsFile: known}, want: holdfast.ErrNotFound},
		"nobody answers the ssh": {url: "ssh://127.0.0.1:1/a", auth: gitsource.SSH{KeyFile: keyFile, KnownHostsFile: known}, want: holdfast.ErrUnavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.url == "" {
				tt.url = url
			}
			s := open(t, t.TempDir(), gitsource.Repository{URL: tt.url, Auth: gitsource.Auth{SSH: tt.auth}})
			refs, err := s.Fetch(t.Context(), repoName)
			if tt.want == nil && tt.word == "" {
				if err != nil || refs["refs/heads/main"] != rev(head) {
					t.Fatalf("Fetch = %v, %v", refs, err)
				}
				if got := content(t, tree(t, s, head)); got["a"] != "1" {
					t.Errorf("tree: %v", got)
				}
				return
			}
			if err == nil || !errors.Is(err, tt.want) && tt.want != nil || !strings.Contains(err.Error(), tt.word) {
				t.Errorf("Fetch = %v, want %v and a word about %q", err, tt.want, tt.word)
			}
			if err != nil && tt.auth.Passphrase != "" && strings.Contains(err.Error(), tt.auth.Passphrase) {
				t.Errorf("the passphrase is in %q", err)
			}
		})
	}
}

// A host that accepts the connection and says nothing does not hold a fetch forever.
func TestFetchFromSilentHost(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	key, signer := gitserver.NewKey(t)
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"key":         string(pem.EncodeToMemory(block)),
		"known_hosts": knownhosts.Line([]string{listener.Addr().String()}, signer.PublicKey()) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := gitsource.New(gitsource.Options{
		Dir: t.TempDir(), IdleTimeout: 20 * time.Millisecond,
		Repositories: []gitsource.Repository{{
			Name: repoName, URL: "ssh://" + listener.Addr().String() + "/a",
			Auth: gitsource.Auth{SSH: gitsource.SSH{KeyFile: dir + "/key", KnownHostsFile: dir + "/known_hosts"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fetch(t.Context(), repoName); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Fetch = %v, want ErrUnavailable", err)
	}
}

func TestPushSSH(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "it's a repo!.git"))
	base := repo.Commit("main", "first", map[string]string{"a": "1"})
	key, signer := gitserver.NewKey(t)
	server := gitserver.StartSSH(t, signer.PublicKey())
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"key":         string(pem.EncodeToMemory(block)),
		"known_hosts": knownhosts.Line([]string{server.Addr}, server.HostKey) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, t.TempDir(), gitsource.Repository{
		URL:  "ssh://git@" + server.Addr + strings.ReplaceAll(repo.Path, " ", "%20"),
		Auth: gitsource.Auth{SSH: gitsource.SSH{KeyFile: dir + "/key", KnownHostsFile: dir + "/known_hosts"}},
	})
	fetch(t, s)
	made := commit(t, s, upgrade(base, map[string]string{"a": "2"}))
	push(t, s, "", made)
	if got := repo.Rev(ours); got != string(made) {
		t.Errorf("the branch is at %s, want %s", got, made)
	}
	if err := s.Push(t.Context(), repoName, ours, "", rev(base)); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("Push() of a branch that is there = %v, want ErrConflict", err)
	}
	push(t, s, made, "")
	if refs := fetch(t, s); len(refs) != 1 {
		t.Errorf("refs after the deletion: %v", refs)
	}
}
