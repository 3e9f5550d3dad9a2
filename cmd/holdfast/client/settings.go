package client

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
)

// clientFile is what the client file may say.
type clientFile struct {
	Server    string `yaml:"server"`
	Token     string `yaml:"token"`
	TokenFile string `yaml:"tokenFile"` // instead of token; relative to the client file
}

// Settings are where Connect finds a server and a token.
type Settings struct {
	Server    string              // its address; empty: HOLDFAST_SERVER, otherwise the client file
	TokenFile string              // private file with a token; empty: HOLDFAST_TOKEN, otherwise the client file
	Getenv    func(string) string // the environment; nil means the process's
	Warnings  io.Writer           // warned if the token goes over a network unencrypted; nil means nobody
	UserAgent string
}

// Connect returns a client. What is given wins over the environment, that over
// the client file, ~/.config/holdfast/client.yaml or what HOLDFAST_CLIENT_CONFIG
// names. The file is only read when it is needed. An error may have a method Hint,
// which says what to do. It is an *AddressError if the server's address is not one.
func Connect(s Settings) (*Client, error) {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	if s.Warnings == nil {
		s.Warnings = io.Discard
	}
	server := cmp.Or(s.Server, s.Getenv("HOLDFAST_SERVER"))
	token := s.Getenv("HOLDFAST_TOKEN")
	var err error
	if s.TokenFile != "" {
		if token, err = ReadSecret(s.TokenFile); err != nil {
			return nil, fmt.Errorf("read token: %w", err)
		}
	}
	if server == "" || token == "" {
		file, err := s.readClientFile()
		if err != nil {
			return nil, err
		}
		// A token goes where it was written down for. One from the file is not
		// sent to a server that the command line names.
		if token == "" && (server == "" || sameServer(server, file.Server)) {
			token = file.Token
		}
		server = cmp.Or(server, file.Server)
	}
	switch {
	case server == "":
		return nil, hint.New(
			errors.New("no server is configured"),
			"give --server, set HOLDFAST_SERVER, or write `server:` into "+s.clientFilePath(),
		)
	case strings.TrimSpace(token) == "":
		return nil, hint.New(
			fmt.Errorf("no token is configured for %s", server),
			"give --token-file, set HOLDFAST_TOKEN, or write `server:` and `token:` into "+s.clientFilePath(),
		)
	}
	base, err := parseServer(server)
	if err != nil {
		return nil, err
	}
	if base.Scheme == "http" && !isLoopback(base.Hostname()) {
		fmt.Fprintf(s.Warnings, "Warning: the token goes to %s unencrypted; use https\n", base.Host)
	}
	return New(base, strings.TrimSpace(token), s.UserAgent), nil
}

// AddressError says that what is given as a server's address is not one.
type AddressError struct{ text, hint string }

func (e *AddressError) Error() string { return e.text }

// Hint says what an address looks like; it may be empty.
func (e *AddressError) Hint() string { return e.hint }

func parseServer(server string) (*url.URL, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, &AddressError{
			fmt.Sprintf("server %q is not an address", server),
			"it looks like https://holdfast.example.com or http://127.0.0.1:8081",
		}
	}
	if base.User != nil {
		return nil, &AddressError{fmt.Sprintf("server %q contains a user or password: give the token separately", base.Redacted()), ""}
	}
	return base, nil
}

func sameServer(a, b string) bool {
	return strings.TrimRight(a, "/") == strings.TrimRight(b, "/")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s Settings) clientFilePath() string {
	if path := s.Getenv("HOLDFAST_CLIENT_CONFIG"); path != "" {
		return path
	}
	dir := s.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		dir = filepath.Join(s.Getenv("HOME"), ".config")
	}
	return filepath.Join(dir, "holdfast", "client.yaml")
}

// readClientFile returns the zero value if there is no file, unless one was
// asked for.
func (s Settings) readClientFile() (clientFile, error) {
	path := s.clientFilePath()
	data, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) && s.Getenv("HOLDFAST_CLIENT_CONFIG") == "" {
		return clientFile{}, nil
	} else if err != nil {
		return clientFile{}, fmt.Errorf("read client file: %w", err)
	}
	var file clientFile
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		// yaml's own words can repeat the value: here that could be the token.
		return clientFile{}, hint.New(
			fmt.Errorf("read client file %s: it has an unexpected format", path),
			"it has the keys server, token and tokenFile, and nothing else",
		)
	}
	if file.Token != "" && file.TokenFile != "" {
		return clientFile{}, fmt.Errorf("read client file %s: token and tokenFile are both given", path)
	}
	if file.TokenFile != "" {
		if !filepath.IsAbs(file.TokenFile) {
			file.TokenFile = filepath.Join(filepath.Dir(path), file.TokenFile)
		}
		if file.Token, err = ReadSecret(file.TokenFile); err != nil {
			return clientFile{}, fmt.Errorf("read token: %w", err)
		}
	}
	return file, nil
}

// ReadSecret reads a short text that its owner alone can read, without the white
// space around it; an error if there is none.
func ReadSecret(path string) (string, error) {
	data, err := readPrivate(path)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return strings.TrimSpace(string(data)), nil
}

// maxSecretFile bounds what is read: a token is short.
const maxSecretFile = 64 << 10

// readPrivate reads a file that its owner alone can read.
func readPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	owner, _ := info.Sys().(*syscall.Stat_t)
	if info.Mode().IsRegular() && info.Mode().Perm()&forOthers(owner.Uid, os.Geteuid()) != 0 {
		return nil, hint.New(
			fmt.Errorf("%s can be read by other users (mode %04o)", path, info.Mode().Perm()),
			"chmod 600 "+path+", and replace the token if others use this machine",
		)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxSecretFile {
		return nil, fmt.Errorf("%s is larger than %d bytes: is this the right file?", path, maxSecretFile)
	}
	return data, nil
}

// forOthers returns the permissions by which others can read a file of an owner. A file
// that root gives to a group is for its members: this is how a pod that is not root gets
// a Kubernetes secret, with an fsGroup.
func forOthers(owner uint32, reader int) fs.FileMode {
	if owner == 0 && reader != 0 {
		return 0o037
	}
	return 0o077
}
