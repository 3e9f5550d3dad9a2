package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
)

// maxBytes bounds holdfast.yaml. A fleet's is a few kilobytes.
const maxBytes = 4 << 20

// Load reads and checks a file. Its faults are a holdfast.Faults.
func Load(path string) (*Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open configuration: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find configuration: %w", err)
	}
	return Parse(path, filepath.Dir(abs), data)
}

// Parse is Load for data: file names it in faults, and relative paths in it
// start in dir.
func Parse(file, dir string, data []byte) (*Config, error) {
	if len(data) > maxBytes {
		return nil, holdfast.Faults{{File: file, Message: "larger than 4 MiB", Hint: "is this holdfast.yaml?"}}
	}
	c := &Config{dir: dir}
	setDefaults(reflect.ValueOf(c).Elem())
	d := &decoder{file: file, where: make(map[string]*yaml.Node)}
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // empty: all defaults
	case err != nil:
		return nil, holdfast.Faults{{File: file, Message: strings.TrimPrefix(err.Error(), "yaml: ")}}
	default:
		d.decode(document.Content[0], "", reflect.ValueOf(c).Elem())
	}
	contradictions{d}.check(c)
	if err := d.faults.Err(); err != nil {
		return nil, err
	}
	c.resolvePaths()
	return c, nil
}

// resolvePaths makes relative paths start in the folder of holdfast.yaml.
func (c *Config) resolvePaths() {
	abs := func(paths ...*string) {
		for _, p := range paths {
			if *p != "" && !filepath.IsAbs(*p) {
				*p = filepath.Join(c.dir, *p)
			}
		}
	}
	abs(&c.DataDir)
	if c.Encryption.KeyFile == "" {
		c.Encryption.KeyFile = filepath.Join(c.DataDir, "key")
	}
	abs(&c.Datastore.Password.File, &c.Datastore.Blobs.Secret.File, &c.Datastore.Blobs.CAFile, &c.Server.Agents.CAFile, &c.Server.Access.OIDC.ClientSecret.File)
	abs(&c.Encryption.KeyFile, &c.Engines.CLIConfigFile)
	redis := &c.Lock.Redis
	abs(&redis.Password.File, &redis.Sentinel.Password.File, &redis.TLS.CAFile, &redis.TLS.CertFile, &redis.TLS.KeyFile)
	for i := range c.Encryption.OldKeyFiles {
		abs(&c.Encryption.OldKeyFiles[i])
	}
	for i := range c.Engines.Dirs {
		abs(&c.Engines.Dirs[i])
	}
	for _, tls := range []*TLS{&c.Server.Public.TLS, &c.Server.API.TLS, &c.Server.Agents.TLS} {
		abs(&tls.CertFile, &tls.KeyFile)
	}
	for i := range c.Server.API.Tokens {
		abs(&c.Server.API.Tokens[i].Token.File)
	}
	for i := range c.Server.Agents.Tokens {
		abs(&c.Server.Agents.Tokens[i].Token.File)
	}
	for i := range c.Forges {
		abs(&c.Forges[i].App.PrivateKeyFile, &c.Forges[i].Token.File)
	}
	for i := range c.Repositories {
		r := &c.Repositories[i]
		abs(&r.WebhookSecret.File, &r.Auth.Password.File, &r.Auth.SSHKeyFile, &r.Auth.SSHPassphrase.File, &r.Auth.KnownHostsFile)
		if r.URL != "" && !strings.Contains(r.URL, ":") {
			abs(&r.URL)
		}
	}
	for i := range c.Cost.Books {
		abs(&c.Cost.Books[i])
	}
	for i := range c.Cost.Sources {
		abs(&c.Cost.Sources[i].Key.File)
	}
	for name, secret := range c.Secrets {
		abs(&secret.File)
		c.Secrets[name] = secret
	}
	for i := range c.Credentials {
		for name, secret := range c.Credentials[i].Secrets {
			abs(&secret.File)
			c.Credentials[i].Secrets[name] = secret
		}
		for host, git := range c.Credentials[i].Git {
			abs(&git.Password.File)
			c.Credentials[i].Git[host] = git
		}
	}
}

// IsZero reports whether no secret is named.
func (s Secret) IsZero() bool { return s == (Secret{}) }

// Value reads the secret.
func (s Secret) Value() (string, error) {
	switch {
	case s.Env != "":
		value, ok := os.LookupEnv(s.Env)
		if !ok || value == "" {
			return "", fmt.Errorf("environment variable %s is not set", s.Env)
		}
		return value, nil
	case s.File != "":
		data, err := os.ReadFile(s.File)
		if err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
		value := strings.TrimRight(string(data), "\r\n")
		if value == "" {
			return "", fmt.Errorf("secret file %s is empty", s.File)
		}
		return value, nil
	default:
		return "", errors.New("no secret is configured")
	}
}
