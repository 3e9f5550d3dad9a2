package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"
)

// connection is how commands reach a server, from their flags.
type connection struct {
	server    string
	tokenFile string
}

func addConnectionFlags(c *cobra.Command, conn *connection) {
	c.Flags().StringVar(&conn.server, "server", "", "address of the server's API (default HOLDFAST_SERVER, then the client file)")
	c.Flags().StringVar(&conn.tokenFile, "token-file", "", "file with your token (default HOLDFAST_TOKEN, then the client file)")
}

// clientFile is what the client file may say.
type clientFile struct {
	Server    string `yaml:"server"`
	Token     string `yaml:"token"`
	TokenFile string `yaml:"tokenFile"` // instead of token; relative to the client file
}

// connect returns a client. Flags win over the environment, that over the
// client file. The file is only read when it is needed.
func (a *app) connect(conn connection) (*client, error) {
	server := firstOf(conn.server, a.getenv("HOLDFAST_SERVER"))
	token := a.getenv("HOLDFAST_TOKEN")
	var err error
	if conn.tokenFile != "" {
		if token, err = readSecret(conn.tokenFile); err != nil {
			return nil, fmt.Errorf("read token: %w", err)
		}
	}
	if server == "" || token == "" {
		file, err := a.readClientFile()
		if err != nil {
			return nil, err
		}
		// A token goes where it was written down for. One from the file is not
		// sent to a server that the command line names.
		if token == "" && (server == "" || sameServer(server, file.Server)) {
			token = file.Token
		}
		server = firstOf(server, file.Server)
	}
	switch {
	case server == "":
		return nil, &hintError{
			errors.New("no server is known"),
			"give --server, set HOLDFAST_SERVER, or write `server:` into " + a.clientFilePath(),
		}
	case strings.TrimSpace(token) == "":
		return nil, &hintError{
			fmt.Errorf("no token is known for %s", server),
			"give --token-file, set HOLDFAST_TOKEN, or write `server:` and `token:` into " + a.clientFilePath(),
		}
	}
	base, err := parseServer(server)
	if err != nil {
		return nil, err
	}
	if base.Scheme == "http" && !isLoopback(base.Hostname()) {
		fmt.Fprintf(a.err, "Warning: the token goes to %s unencrypted; use https\n", base.Host)
	}
	return newClient(base, strings.TrimSpace(token)), nil
}

func parseServer(server string) (*url.URL, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, &hintError{
			usageError("server %q is not an address", server),
			"it looks like https://holdfast.example.com or http://127.0.0.1:8081",
		}
	}
	if base.User != nil {
		return nil, usageError("server %q has a user or password in it: the token is given apart", base.Redacted())
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

func (a *app) clientFilePath() string {
	if path := a.getenv("HOLDFAST_CLIENT_CONFIG"); path != "" {
		return path
	}
	dir := a.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		dir = filepath.Join(a.getenv("HOME"), ".config")
	}
	return filepath.Join(dir, "holdfast", "client.yaml")
}

// readClientFile returns the zero value if there is no file, unless one was
// asked for.
func (a *app) readClientFile() (clientFile, error) {
	path := a.clientFilePath()
	data, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) && a.getenv("HOLDFAST_CLIENT_CONFIG") == "" {
		return clientFile{}, nil
	} else if err != nil {
		return clientFile{}, fmt.Errorf("read client file: %w", err)
	}
	var file clientFile
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		// yaml's own words can repeat the value: here that could be the token.
		return clientFile{}, &hintError{
			fmt.Errorf("read client file %s: not what is expected there", path),
			"it has the keys server, token and tokenFile, and nothing else",
		}
	}
	if file.Token != "" && file.TokenFile != "" {
		return clientFile{}, fmt.Errorf("read client file %s: token and tokenFile are both given", path)
	}
	if file.TokenFile != "" {
		if !filepath.IsAbs(file.TokenFile) {
			file.TokenFile = filepath.Join(filepath.Dir(path), file.TokenFile)
		}
		if file.Token, err = readSecret(file.TokenFile); err != nil {
			return clientFile{}, fmt.Errorf("read token: %w", err)
		}
	}
	return file, nil
}

func readSecret(path string) (string, error) {
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
	if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return nil, &hintError{
			fmt.Errorf("%s can be read by others than you (mode %04o)", path, info.Mode().Perm()),
			"chmod 600 " + path + ", and replace the token if others use this machine",
		}
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

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
