package gitsource_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// sshServer runs git-upload-pack for whoever has the key.
type sshServer struct {
	addr    string
	hostKey ssh.PublicKey
}

func newKey(t *testing.T) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, signer
}

func startSSH(t *testing.T, allowed ssh.PublicKey) sshServer {
	t.Helper()
	_, host := newKey(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(allowed.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serveSSH(conn, config) })
		}
	})
	t.Cleanup(func() { listener.Close(); wg.Wait() })
	return sshServer{addr: listener.Addr().String(), hostKey: host.PublicKey()}
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			if request.Type != "exec" {
				_ = request.Reply(false, nil)
				continue
			}
			_ = request.Reply(true, nil)
			var command struct{ Text string }
			_ = ssh.Unmarshal(request.Payload, &command)
			cmd := exec.Command("sh", "-c", command.Text)
			cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
			in, _ := cmd.StdinPipe()
			go func() { _, _ = io.Copy(in, channel); in.Close() }()
			status := struct{ Code uint32 }{}
			if cmd.Run() != nil {
				status.Code = 128
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
			_ = channel.Close()
		}
	}
}

func TestFetchSSH(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "it's a repo!.git"))
	head := repo.Commit("main", "first", map[string]string{"a": "1"})
	key, signer := newKey(t)
	other, _ := newKey(t)
	_, stranger := newKey(t)
	server := startSSH(t, signer.PublicKey())
	url := "ssh://git@" + server.addr + strings.ReplaceAll(repo.Path, " ", "%20")

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
		known      = file("known_hosts", knownhosts.Line([]string{server.addr}, server.hostKey)+"\n")
		impostor   = file("impostor", knownhosts.Line([]string{server.addr}, stranger.PublicKey())+"\n")
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
		"no such repository":     {url: "ssh://" + server.addr + "/nothing/here", auth: gitsource.SSH{KeyFile: keyFile, KnownHostsFile: known}, want: holdfast.ErrNotFound},
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

// A host that accepts the connection and says nothing does not hold a fetch for ever.
func TestFetchFromSilentHost(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	key, signer := newKey(t)
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
	key, signer := newKey(t)
	server := startSSH(t, signer.PublicKey())
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"key":         string(pem.EncodeToMemory(block)),
		"known_hosts": knownhosts.Line([]string{server.addr}, server.hostKey) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, t.TempDir(), gitsource.Repository{
		URL:  "ssh://git@" + server.addr + strings.ReplaceAll(repo.Path, " ", "%20"),
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
