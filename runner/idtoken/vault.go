// Vault, where the agent logs in for the engine.

package idtoken

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// vaultLogin is a token of Vault.
type vaultLogin struct {
	at     protocol.VaultIdentity
	client *http.Client
	token  string
}

// vaultAuth is the part of Vault's answer to a login and a renewal that counts.
type vaultAuth struct {
	Token     string `json:"client_token"`
	Lease     int    `json:"lease_duration"` // seconds; zero: without end
	Renewable bool   `json:"renewable"`
}

// vaultTime is how long one request may take, vaultTries how often a login is tried.
const (
	vaultTime  = 30 * time.Second
	vaultTries = 5
)

// openVault logs in, once: the engine cannot be given another token while it runs. So the
// token is renewed instead.
func (k *Keeper) openVault(ctx, keep context.Context) error {
	v := k.opts.Identities.Vault
	jwt, err := k.current(v.Audience)
	if err != nil {
		return unavailable(ctx, err)
	}
	login := &vaultLogin{at: *v}
	if login.client, err = vaultClient(k.opts.VaultCA); err != nil {
		return &failure.Error{
			Cause: holdfast.CauseSecretUnavailable, Err: fmt.Errorf("read the authorities of Vault's certificate: %w", err),
			Hint: "VAULT_CACERT under credentials in holdfast.yaml names a file on the agent's machine",
		}
	}
	var auth vaultAuth
	for try := 1; ; try++ {
		auth, err = login.call(ctx, "auth/"+v.Mount+"/login", map[string]string{"role": v.Role, "jwt": jwt})
		var refused *vaultError
		if err == nil || ctx.Err() != nil || try == vaultTries || errors.As(err, &refused) && refused.final() {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(try) * time.Second):
		}
	}
	if err == nil && auth.Token == "" {
		err = errors.New("the answer has no token")
	}
	if err != nil {
		return vaultFailed(ctx, *v, err)
	}
	k.opts.Redact(auth.Token)
	login.token, k.vault = auth.Token, login
	k.set("VAULT_ADDR", v.Address)
	k.set("VAULT_TOKEN", auth.Token)
	if v.Namespace != "" {
		k.set("VAULT_NAMESPACE", v.Namespace)
	}
	lease := time.Duration(auth.Lease) * time.Second
	switch {
	case lease == 0:
	case auth.Renewable:
		k.renewed.Go(func() { k.renewVault(keep, lease) })
	default:
		k.opts.Say("Vault's token ends in %s and cannot be renewed: a run that takes longer loses it", lease)
	}
	return nil
}

// vaultClient has its own connections, and trusts the authorities in a file; without
// one those of the machine.
func vaultClient(file string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	if file == "" {
		return &http.Client{Transport: transport}, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport}, nil
}

func vaultFailed(ctx context.Context, v protocol.VaultIdentity, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *vaultError
	return &failure.Error{
		Cause: holdfast.CauseSecretUnavailable, Err: fmt.Errorf("log in to Vault as role %s: %w", v.Role, err),
		Transient: !errors.As(err, &refused) || !refused.final(),
		Hint: fmt.Sprintf("the role's bound_audiences must have %s, and its bound_subject or bound_claims this run's subject: see docs/keyless.md",
			v.Audience),
	}
}

// renewVault has the token live on.
func (k *Keeper) renewVault(ctx context.Context, lease time.Duration) {
	ends := time.Now().Add(lease)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(time.Until(ends)/2, leastPause)):
		}
		auth, err := k.vault.call(ctx, "auth/token/renew-self", map[string]string{})
		var refused *vaultError
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && auth.Lease > 0:
			ends = time.Now().Add(time.Duration(auth.Lease) * time.Second)
		case err != nil && (errors.As(err, &refused) && refused.final() || time.Now().After(ends)):
			k.opts.Logger.WarnContext(ctx, "token of Vault was not renewed", "err", err)
			k.opts.Say("Vault's token was not renewed: %v", err)
			return
		}
	}
}

// revoke gives the token back. If that fails it ends when its time is over.
func (v *vaultLogin) revoke(ctx context.Context) {
	_, _ = v.call(ctx, "auth/token/revoke-self", map[string]string{})
}

// vaultError is an answer of Vault other than success.
type vaultError struct {
	status int
	text   string
}

func (e *vaultError) Error() string { return fmt.Sprintf("Vault answered %d%s", e.status, e.text) }

// final reports whether asking again cannot help.
func (e *vaultError) final() bool {
	return e.status/100 == 4 && e.status != http.StatusTooManyRequests && e.status != http.StatusPreconditionFailed
}

const maxVaultAnswer = 1 << 20

func (v *vaultLogin) call(ctx context.Context, path string, body any) (vaultAuth, error) {
	ctx, cancel := context.WithTimeout(ctx, vaultTime)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return vaultAuth{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.at.Address+"/v1/"+path, bytes.NewReader(data))
	if err != nil {
		return vaultAuth{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Vault-Request", "true")
	if v.at.Namespace != "" {
		req.Header.Set("X-Vault-Namespace", v.at.Namespace)
	}
	if v.token != "" {
		req.Header.Set("X-Vault-Token", v.token)
	}
	res, err := v.client.Do(req)
	if err != nil {
		return vaultAuth{}, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxVaultAnswer))
	if err != nil {
		return vaultAuth{}, err
	}
	var decoded struct {
		Auth   vaultAuth `json:"auth"`
		Errors []string  `json:"errors"`
	}
	malformed := len(answer) > 0 && json.Unmarshal(answer, &decoded) != nil
	switch {
	case res.StatusCode/100 != 2:
		text := ""
		if len(decoded.Errors) > 0 {
			text = fmt.Sprintf(": %.300q", decoded.Errors[0])
		}
		return vaultAuth{}, &vaultError{res.StatusCode, text}
	case malformed:
		return vaultAuth{}, errors.New("the answer is not JSON")
	}
	return decoded.Auth, nil
}
