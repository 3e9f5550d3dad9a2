package gitserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os/exec"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// SSH runs git-upload-pack for whoever has the key.
type SSH struct {
	Addr    string // host:port
	HostKey ssh.PublicKey
}

// NewKey returns a new key, which is its own signer too.
func NewKey(t testing.TB) (ed25519.PrivateKey, ssh.Signer) {
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

// StartSSH starts a server that lasts as long as the test.
func StartSSH(t testing.TB, allowed ssh.PublicKey) SSH {
	t.Helper()
	_, host := NewKey(t)
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
	return SSH{Addr: listener.Addr().String(), HostKey: host.PublicKey()}
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
