package agentkey_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/agentkey"
)

const server = "https://agents.example.com"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pair is a key with what tests need of it.
type pair struct {
	agentkey.Key
	private    ed25519.PrivateKey
	public, id string
}

func newPair(t *testing.T) pair {
	t.Helper()
	key, err := agentkey.Generate()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicPEM()
	if err != nil {
		t.Fatal(err)
	}
	id, err := key.ID()
	if err != nil {
		t.Fatal(err)
	}
	return pair{key, parsed.(ed25519.PrivateKey), public, id}
}

func part(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

type object map[string]any

// with is claims that are good, except for changes: nil removes one.
func with(changes object) object {
	claims := object{
		"iss": "eu/1", "sub": "eu/1", "aud": server, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	}
	for key, value := range changes {
		if claims[key] = value; value == nil {
			delete(claims, key)
		}
	}
	return claims
}

// signed is a token with any header and claims.
func signed(t *testing.T, header, claims object, sign func(text []byte) []byte) string {
	t.Helper()
	text := part(t, header) + "." + part(t, claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(text)))
}

func TestVerify(t *testing.T) {
	t.Parallel()
	key, other := newPair(t), newPair(t)
	by := func(p pair) func([]byte) []byte {
		return func(text []byte) []byte { return ed25519.Sign(p.private, text) }
	}
	good := object{"alg": "EdDSA", "typ": "JWT", "kid": key.id}
	der := func() []byte { block, _ := pem.Decode([]byte(key.public)); return block.Bytes }()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claimed := func(changes object) string { return signed(t, good, with(changes), by(key)) }
	const notSigned = "not one that a key of a runner has signed"
	for name, test := range map[string]struct {
		token string
		words string // of the error; empty: it is good
	}{
		"good":                        {claimed(nil), ""},
		"a list of one audience":      {claimed(object{"aud": []string{server}}), ""},
		"a clock that is behind":      {claimed(object{"iat": now.Add(-80 * time.Second).Unix(), "exp": now.Add(-20 * time.Second).Unix()}), ""},
		"a clock that is ahead":       {claimed(object{"iat": now.Add(20 * time.Second).Unix(), "exp": now.Add(5 * time.Minute).Unix()}), ""},
		"as long as it may be":        {claimed(object{"exp": now.Add(5 * time.Minute).Unix()}), ""},
		"too long a life":             {claimed(object{"exp": now.Add(5*time.Minute + time.Second).Unix()}), "longer than 5m0s"},
		"a life without an end":       {claimed(object{"exp": int64(1) << 55}), "longer than 5m0s"},
		"expired":                     {claimed(object{"iat": now.Add(-3 * time.Minute).Unix(), "exp": now.Add(-31 * time.Second).Unix()}), "expired 31s ago"},
		"of the future":               {claimed(object{"iat": now.Add(31 * time.Second).Unix(), "exp": now.Add(2 * time.Minute).Unix()}), "clock is ahead"},
		"not yet":                     {claimed(object{"nbf": now.Add(time.Minute).Unix()}), "clock is ahead"},
		"no end":                      {claimed(object{"exp": nil}), "exp claim is required"},
		"no beginning":                {claimed(object{"iat": nil}), "(iat)"},
		"no audience":                 {claimed(object{"aud": nil}), "aud claim is required"},
		"an empty audience":           {claimed(object{"aud": ""}), "aud claim is required"},
		"another server":              {claimed(object{"aud": "https://other.example.com"}), `this server is "https://agents.example.com"`},
		"a server of a longer name":   {claimed(object{"aud": server + ".evil.example"}), "this server is"},
		"several servers":             {claimed(object{"aud": []string{server, "https://other.example.com"}}), "several servers"},
		"an issuer of another name":   {claimed(object{"iss": "eu/2"}), "(iss)"},
		"no issuer":                   {claimed(object{"iss": nil}), "(iss)"},
		"no agent":                    {claimed(object{"sub": nil}), "no runner has the key"},
		"an agent of another runner":  {claimed(object{"sub": "us/1", "iss": "us/1"}), "no runner has the key"},
		"times that are texts":        {claimed(object{"exp": "tomorrow"}), notSigned},
		"a key that is not in force":  {signed(t, object{"alg": "EdDSA", "kid": other.id}, with(nil), by(other)), "no runner has the key"},
		"no key's name":               {signed(t, object{"alg": "EdDSA"}, with(nil), by(key)), "no runner has the key"},
		"another key than it names":   {signed(t, good, with(nil), by(other)), notSigned},
		"a header that has to be met": {signed(t, object{"alg": "EdDSA", "kid": key.id, "crit": []string{"b64"}, "b64": false}, with(nil), by(key)), "no runner has the key"},
		"no algorithm":                {signed(t, object{"alg": "none", "kid": key.id}, with(nil), func([]byte) []byte { return nil }), notSigned},
		"no algorithm in capitals":    {signed(t, object{"alg": "NONE", "kid": key.id}, with(nil), func([]byte) []byte { return nil }), notSigned},
		"the public key as a secret": {signed(t, object{"alg": "HS256", "kid": key.id}, with(nil), func(text []byte) []byte {
			mac := hmac.New(sha256.New, der)
			mac.Write(text)
			return mac.Sum(nil)
		}), notSigned},
		"RSA": {signed(t, object{"alg": "RS256", "kid": key.id}, with(nil), func(text []byte) []byte {
			sum := sha256.Sum256(text)
			signature, err := rsa.SignPKCS1v15(rand.Reader, rsaKey, crypto.SHA256, sum[:])
			if err != nil {
				t.Error(err)
			}
			return signature
		}), notSigned},
		"claims of another token": {strings.Join([]string{
			part(t, good), part(t, with(object{"sub": "eu/2", "iss": "eu/2"})), strings.Split(claimed(nil), ".")[2],
		}, "."), notSigned},
		"padding":   {claimed(nil) + "=", notSigned},
		"no token":  {"a.b.c", notSigned},
		"not three": {"a.b", notSigned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := agentkey.Verify(test.token, agentkey.Verifying{
				Audience: agentkey.Audience(server), Now: now,
				Keys: func(agent string) ([]string, error) {
					if !strings.HasPrefix(agent, "eu/") {
						return nil, nil
					}
					return []string{"spoiled", newPair(t).public, key.public}, nil
				},
			})
			switch {
			case test.words == "" && (err != nil || got.Agent != "eu/1" || got.Key != key.id):
				t.Errorf("got %+v, %v", got, err)
			case test.words != "" && (err == nil || !strings.Contains(err.Error(), test.words)):
				t.Errorf("got %+v, %v, want an error with %q", got, err, test.words)
			case (test.words == notSigned || strings.HasPrefix(test.words, "no runner")) && got.Agent != "":
				t.Errorf("%+v counts as proven", got)
			}
		})
	}
}

// Where the server does not know its own address no token is good, not even one for nobody.
func TestServerWithoutAnAddress(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	token := signed(t, object{"alg": "EdDSA", "kid": key.id}, with(object{"aud": ""}), func(text []byte) []byte { return ed25519.Sign(key.private, text) })
	_, err := agentkey.Verify(token, agentkey.Verifying{Now: now, Keys: func(string) ([]string, error) { return []string{key.public}, nil }})
	if err == nil || !strings.Contains(err.Error(), "server.agents.url") {
		t.Errorf("got %v", err)
	}
}

// Trouble in reading keys is not the agent's fault.
func TestKeysThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk")
	token, err := signer(t, newPair(t).Key, func() time.Time { return now }).Token()
	if err != nil {
		t.Fatal(err)
	}
	_, err = agentkey.Verify(token, agentkey.Verifying{Audience: server, Now: now, Keys: func(string) ([]string, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func signer(t *testing.T, key agentkey.Key, clock func() time.Time) *agentkey.Signer {
	t.Helper()
	s, err := agentkey.New(key, "eu/1", "https://AGENTS.example.com:443/", clock)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A token is used for a while, and replaced long before it expires, also when the clock is set.
func TestSigner(t *testing.T) {
	t.Parallel()
	key, clock := newPair(t), now
	s := signer(t, key.Key, func() time.Time { return clock })
	last := ""
	for _, step := range []struct {
		after time.Duration
		new   bool
	}{{0, true}, {time.Minute, false}, {time.Minute, true}, {time.Hour, true}, {-2 * time.Hour, true}, {time.Second, false}} {
		clock = clock.Add(step.after)
		token, err := s.Token()
		if err != nil || (token != last) != step.new {
			t.Errorf("at %s: a new one: %t, %v", clock, token != last, err)
		}
		last = token
		_, err = agentkey.Verify(token, agentkey.Verifying{
			Audience: agentkey.Audience(server), Now: clock.Add(2 * time.Minute), Keys: func(string) ([]string, error) { return []string{key.public}, nil },
		})
		if err != nil {
			t.Errorf("at %s: %v", clock, err)
		}
	}
}

func TestAudience(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://agents.example.com":      server,
		"https://Agents.Example.com:443/": server,
		"HTTPS://agents.example.com":      server,
		"https://agents.example.com:8082": server + ":8082",
		"https://example.com/agents/":     "https://example.com/agents",
		"http://127.0.0.1:8082":           "http://127.0.0.1:8082",
		"unix:///run/agent.sock":          "",
		"agents.example.com":              "",
		"":                                "",
	} {
		if got := agentkey.Audience(address); got != want {
			t.Errorf("%q is %q, want %q", address, got, want)
		}
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	text, err := key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := agentkey.ParseKey(text); err != nil || again.IsZero() {
		t.Errorf("its own key: %v", err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	of, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, words string }{
		"nothing":      {"", "not one private key"},
		"two":          {string(text) + string(text), "not one private key"},
		"a public one": {key.public, "it is a public key"},
		"encrypted":    {strings.ReplaceAll(string(text), "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), "without a passphrase"},
		"RSA":          {string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: of})), "not an Ed25519 key"},
	} {
		if _, err := agentkey.ParseKey([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
