package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
)

// LoginWish is what a command line wants to be allowed.
type LoginWish struct {
	Name     string // what it is called on the page where a person allows it
	Role     string // the strongest
	Projects []string
	Lifetime time.Duration
}

// Login is the exchange by which a command line gets a token: a person who has logged in to
// the server in a browser allows it.
type Login struct {
	c        *connection
	server   string
	wish     LoginWish
	verifier string
}

// Granted is the token that a command line got.
type Granted struct {
	Token     string    `json:"token"`
	ID        string    `json:"id"`
	Name      string    `json:"name"` // who has allowed it
	ExpiresAt time.Time `json:"expiresAt"`
}

// NewLogin returns the exchange with the server that flags, environment or client file name.
func NewLogin(s Settings, wish LoginWish) (*Login, error) {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	server := cmp.Or(s.Server, s.Getenv("HOLDFAST_SERVER"))
	if server == "" {
		_, file, err := s.loginFiles()
		if err != nil {
			return nil, err
		}
		server = file.Server
	}
	if server == "" {
		return nil, hint.New(errors.New("no server is configured"), "give --server, or set HOLDFAST_SERVER")
	}
	base, err := parseServer(server)
	if err != nil {
		return nil, err
	}
	if base.Scheme == "http" && !isLoopback(base.Hostname()) {
		return nil, hint.New(fmt.Errorf("server %s is reached unencrypted: browsers do not log in there", base.Host), "use its https address")
	}
	return &Login{c: &New(base, "", s.UserAgent).connection, server: server, wish: wish, verifier: randomText()}, nil
}

// Server is the address of the server, as it was given.
func (l *Login) Server() string { return l.server }

func (l *Login) challenge() string {
	hash := sha256.Sum256([]byte(l.verifier))
	return base64.RawURLEncoding.EncodeToString(hash[:])
}

// Page is where a browser on this machine allows it: it then leads back to an address at
// which the caller listens, with the state.
func (l *Login) Page(redirect, state string) string {
	page := l.c.base.JoinPath("/device/cli")
	page.RawQuery = url.Values{
		"redirect": {redirect}, "state": {state}, "challenge": {l.challenge()}, "name": {l.wish.Name}, "role": {l.wish.Role},
		"project": l.wish.Projects, "seconds": {strconv.FormatInt(int64(l.wish.Lifetime/time.Second), 10)},
	}.Encode()
	return page.String()
}

// Code is what a person types on a page of the server.
type Code struct {
	Code, Page string
	secret     string
	every      time.Duration
}

// Begin asks for a code.
func (l *Login) Begin(ctx context.Context) (Code, error) {
	var answer struct {
		Secret, Code, Path  string
		Interval, ExpiresIn int
	}
	_, err := l.post(ctx, "/login/commands", map[string]any{
		"name": l.wish.Name, "challenge": l.challenge(), "role": l.wish.Role, "projects": l.wish.Projects, "seconds": int64(l.wish.Lifetime / time.Second),
	}, &answer)
	if err != nil {
		return Code{}, err
	}
	return Code{answer.Code, l.c.base.JoinPath(answer.Path).String(), answer.Secret, max(time.Second, time.Duration(answer.Interval)*time.Second)}, nil
}

// Wait waits until somebody has typed the code and allowed it.
func (l *Login) Wait(ctx context.Context, code Code) (Granted, error) {
	for {
		granted, err := l.Exchange(ctx, code.secret)
		if err != nil || granted.Token != "" {
			return granted, err
		}
		select {
		case <-ctx.Done():
			return Granted{}, context.Cause(ctx)
		case <-time.After(code.every):
		}
	}
}

// Exchange exchanges a secret, or the code that a browser brought, for a token. It has none
// while nobody has answered.
func (l *Login) Exchange(ctx context.Context, secret string) (granted Granted, err error) {
	status, err := l.post(ctx, "/login/token", map[string]string{"secret": secret, "verifier": l.verifier}, &granted)
	if err == nil && status == http.StatusAccepted {
		return Granted{}, nil
	}
	return granted, err
}

// post sends JSON to a path outside of the API, for which no token is needed.
func (l *Login) post(ctx context.Context, path string, in, out any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	data, err := json.Marshal(in)
	if err != nil {
		return 0, fmt.Errorf("write request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.c.base.JoinPath(path).String(), bytes.NewReader(data))
	if err != nil {
		return 0, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", l.c.userAgent)
	res, err := l.c.http.Do(req)
	if err != nil {
		return 0, l.c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return res.StatusCode, l.c.refusal(res)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(out); err != nil {
		return res.StatusCode, fmt.Errorf("read answer of %s: %w", l.c.base.Host, err)
	}
	return res.StatusCode, nil
}

func randomText() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// tokenName is the file of the token next to the client file.
const tokenName = "token"

// SaveLogin keeps a token for a server: in a private file next to the client file, which names
// it. It returns the token's file. A client file of another server, or with its own token, is
// left alone, and is an error.
func SaveLogin(s Settings, server, token string) (string, error) {
	path, file, err := s.loginFiles()
	if err != nil {
		return "", err
	}
	tokenFile := filepath.Join(filepath.Dir(path), tokenName)
	switch {
	case file.Server != "" && !sameServer(file.Server, server):
		return "", hint.New(fmt.Errorf("%s is for another server: %s", path, file.Server), "set HOLDFAST_CLIENT_CONFIG to another file for this one")
	case file.Token != "" || file.TokenFile != "" && file.TokenFile != tokenFile:
		return "", hint.New(fmt.Errorf("%s has a token already", path), "remove token and tokenFile from it")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("keep token: %w", err)
	}
	if err := writePrivate(tokenFile, token+"\n"); err != nil {
		return "", fmt.Errorf("keep token: %w", err)
	}
	if file.TokenFile != "" {
		return tokenFile, nil
	}
	text, err := yaml.Marshal(map[string]string{"server": server, "tokenFile": tokenName})
	if err != nil {
		return "", fmt.Errorf("write client file: %w", err)
	}
	if err := writePrivate(path, string(text)); err != nil {
		return "", fmt.Errorf("write client file: %w", err)
	}
	return tokenFile, nil
}

// ForgetLogin removes the token that SaveLogin has kept; an fs.ErrNotExist if there is none.
func ForgetLogin(s Settings) error {
	path, _, err := s.loginFiles()
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(filepath.Dir(path), tokenName))
}

// loginFiles returns the client file and what it says, without reading a token.
func (s Settings) loginFiles() (path string, file clientFile, err error) {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	path = s.clientFilePath()
	data, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, file, nil
	} else if err != nil {
		return path, file, fmt.Errorf("read client file: %w", err)
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return path, file, fmt.Errorf("read client file %s: it has an unexpected format", path) // its words can repeat the token
	}
	if file.TokenFile != "" && !filepath.IsAbs(file.TokenFile) {
		file.TokenFile = filepath.Join(filepath.Dir(path), file.TokenFile)
	}
	return path, file, nil
}

// writePrivate replaces a file that its owner alone can read.
func writePrivate(path, text string) error {
	made, err := os.CreateTemp(filepath.Dir(path), ".holdfast-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = made.WriteString(text)
	if err = errors.Join(err, made.Close()); err == nil {
		err = os.Rename(made.Name(), path)
	}
	if err != nil {
		_ = os.Remove(made.Name())
	}
	return err
}
