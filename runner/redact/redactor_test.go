package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/redact"
)

const redacted = "(sensitive value)"

func TestRedactorForms(t *testing.T) {
	t.Parallel()

	const secret = `p4$$ "quoted" <wörd>&\back/slash+${x}`
	marshalled, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"as it is":        secret,
		"JSON":            string(marshalled),
		"JSON, no HTML":   strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(marshalled)),
		"HCL":             `p4$$ \"quoted\" <wörd>&\\back/slash+$${x}`,
		"ASCII":           `p4$$ \"quoted\" <w\u00f6rd>&\\back/slash+${x}`,
		"query":           url.QueryEscape(secret),
		"path":            url.PathEscape(secret),
		"base64":          base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64, URL":     base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"basic auth":      base64.StdEncoding.EncodeToString([]byte("user:" + secret)),
		"inside base64":   base64.StdEncoding.EncodeToString([]byte("ab" + secret + "cd")),
		"wrapped":         strings.Replace(secret, " ", "\n", 1),
		"wrapped, framed": strings.Replace(secret, " ", "\n│ ", 1),
	}
	r := redact.New([]string{secret})
	for name, form := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.String("before " + form + " after")
			if !strings.Contains(got, redacted) || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("String = %q", got)
			}
			if strings.Contains(got, form[2:len(form)-4]) {
				t.Errorf("String = %q has %q", got, form)
			}
		})
	}
}

func TestRedactorString(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		secrets []string
		in      string
		want    string
	}{
		"none":                      {nil, "text", "text"},
		"empty text":                {[]string{"secret-value"}, "", ""},
		"short values are ignored":  {[]string{"short", "       x"}, "short x", "short x"},
		"eight characters":          {[]string{"12345678"}, "a12345678b", "a" + redacted + "b"},
		"all of the text":           {[]string{"12345678"}, "12345678", redacted},
		"twice, touching":           {[]string{"12345678"}, "1234567812345678", redacted + redacted},
		"the longest wins":          {[]string{"12345678", "123456789abc"}, "x123456789abc 12345678y", "x" + redacted + " " + redacted + "y"},
		"overlapping: the leftmost": {[]string{"abcdefgh", "efghijkl"}, "abcdefghijkl", redacted + "ijkl"},
		"line by line": {
			[]string{"first line of it\nsecond line of it\n"},
			"+ first line of it\n+ second line of it\n", "+ " + redacted + "\n+ " + redacted + "\n",
		},
		"plain fields of a document stay": {
			[]string{"kind: Config\napiVersion: v1\nclusters:\n- name: x\ntoken: 0123456789abcdef\n"},
			"kind: Config\napiVersion: v1\nclusters:\n", "kind: Config\napiVersion: v1\nclusters:\n",
		},
		"secret fields of a JSON document": {
			[]string{`{"type":"service_account","private_key":"-----BEGIN KEY-----\nMIIabcdefgh\n"}`},
			"type service_account MIIabcdefgh", "type service_account " + redacted,
		},
		"named":              {nil, `+ password = "hunter2"`, `+ password = "` + redacted + `"`},
		"named, changed":     {nil, `~ db_password = "old" -> "new" # forces`, `~ db_password = "` + redacted + `" -> "` + redacted + `" # forces`},
		"named in JSON":      {nil, `{"api_token":"a\"b","x":"y"}`, `{"api_token":"` + redacted + `","x":"y"}`},
		"named in a string":  {nil, `"{\"password\":\"x\",\"user\":\"y\"}"`, `"{\"password\":\"` + redacted + `\",\"user\":\"y\"}"`},
		"named camelCase":    {nil, `clientSecret: "x"`, `clientSecret: "` + redacted + `"`},
		"about a secret":     {nil, `secret_name = "x" token_ttl = "5"`, `secret_name = "x" token_ttl = "5"`},
		"no secret at all":   {nil, `tokenizer = "x" monkey = "y" key = "z"`, `tokenizer = "x" monkey = "y" key = "z"`},
		"known after apply":  {nil, `password = (known after apply)`, `password = (known after apply)`},
		"user info":          {nil, "git::https://me:pass@host/x?y", "git::https://me:" + redacted + "@host/x?y"},
		"no user info":       {nil, "https://host:8443/a@b", "https://host:8443/a@b"},
		"authorization":      {nil, "Authorization: Bearer abc.def", "Authorization: Bearer " + redacted},
		"authorization JSON": {nil, `"authorization":["Basic YTpi"]`, `"authorization":["Basic ` + redacted + `"]`},
		"here document": {
			nil, "+ private_key = <<-EOT\n    line one\n    line two\n  EOT\n+ other = \"x\"\n",
			"+ private_key = <<-EOT\n" + redacted + "\n  EOT\n+ other = \"x\"\n",
		},
		"here document without an end": {
			nil, "token = <<X\nline\nholdfast: running apply\nnext\n", "token = <<X\n" + redacted + "\nholdfast: running apply\nnext\n",
		},
		"here document without bounds": {
			nil, "token = <<X\n" + strings.Repeat("a line of 16 by\n", 16<<10) + "next\n", "token = <<X\n" + redacted + "\nnext\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := redact.New(test.secrets).String(test.in); got != test.want {
				t.Errorf("String = %q, want %q", got, test.want)
			}
		})
	}
}

// once makes one of marks that stand side by side: how many there are of a secret
// that repeats itself is not promised.
func once(s string) string {
	for strings.Contains(s, redacted+redacted) {
		s = strings.ReplaceAll(s, redacted+redacted, redacted)
	}
	return s
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if n, err := io.WriteString(w, text); err != nil || n != len(text) {
		t.Fatalf("Write = %d, %v", n, err)
	}
}

func TestRedactorWriterStreams(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer
	r := redact.New([]string{"secret one\nsecret two"})
	w := r.Writer(&out)
	for _, step := range []struct{ write, want string }{
		{"Creating...\n", "Creating...\n"},
		{"half a line", ""},
		{", the other\n", "half a line, the other\n"},
		{"secret", ""},
		{" one\n", ""}, // the second line may follow
		{"secret two\n", redacted + "\n"},
		{"no end and sec", ""},
	} {
		out.Reset()
		write(t, w, step.write)
		if out.String() != step.want {
			t.Errorf("after %q: %q, want %q", step.write, out.String(), step.want)
		}
	}
	r.Add("added later")
	out.Reset()
	write(t, w, "ond added later\n")
	if got := out.String(); got != "no end and second "+redacted+"\n" {
		t.Errorf("after Add: %q", got)
	}
	out.Reset()
	write(t, w, "secret o")
	if err := w.Close(); err != nil || out.String() != "secret o" {
		t.Errorf("Close: %v, %q", err, out.String())
	}
}

// TestRedactorWriterIsBounded writes lines without an end.
func TestRedactorWriterIsBounded(t *testing.T) {
	t.Parallel()

	r := redact.New([]string{strings.Repeat("x", 100_000), "aaaaaaaa"})
	for name, piece := range map[string]string{
		"plain":              strings.Repeat("plain text ", 10_000),
		"one secret's start": strings.Repeat("x", 110_000),
		"all secrets":        strings.Repeat("a", 110_000),
		"quotes":             strings.Repeat(`"`, 110_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var passed counter
			w := r.Writer(&passed)
			written := 0
			for range 20 {
				write(t, w, piece)
				written += len(piece)
			}
			if name == "plain" && written-passed.n > 256<<10 {
				t.Errorf("%d of %d bytes are held", written-passed.n, written)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

type counter struct{ n int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

func TestRedactorWriterReturnsErrors(t *testing.T) {
	t.Parallel()

	full := errors.New("disk full")
	w := redact.New(nil).Writer(writerFunc(func([]byte) (int, error) { return 0, full }))
	if _, err := io.WriteString(w, "line\n"); !errors.Is(err, full) {
		t.Errorf("Write: %v", err)
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("Close: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRedactorIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()

	r := redact.New(nil)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				secret := fmt.Sprintf("secret-%d-%d-end", i, j)
				r.Add(secret)
				if got := r.String("x " + secret); got != "x "+redacted {
					t.Errorf("String = %q", got)
				}
			}
		})
	}
	group.Wait()
}

func corpusSecret(random *rand.Rand, i int) string {
	var raw [18]byte
	for j := range raw {
		raw[j] = byte(random.UintN(256))
	}
	switch i % 7 {
	case 0:
		return hex.EncodeToString(raw[:])
	case 1:
		return base64.StdEncoding.EncodeToString(raw[:])
	case 2:
		return "pass phrase " + hex.EncodeToString(raw[:6])
	case 3:
		return "-----BEGIN KEY-----\n" + base64.StdEncoding.EncodeToString(raw[:]) + "\n-----END KEY-----\n"
	case 4:
		return hex.EncodeToString(raw[:4])
	case 5:
		return `q"uote\` + hex.EncodeToString(raw[:5]) + `<&>`
	default:
		return "päß-wört-" + hex.EncodeToString(raw[:5])
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("some text with secret-one in it", "secret-one", 3)
	f.Add("aaaaaaaaaaaaaaaaaaaa", "aaaaaaaa", 1)
	f.Add("password = \"x\" secret\nvalue", "secret\nvalue", 2)
	f.Fuzz(func(t *testing.T, text, secret string, piece int) {
		r := redact.New([]string{secret})
		want := r.String(text)
		if trimmed := strings.TrimSpace(secret); len(trimmed) >= 8 && !strings.Contains(redacted+redacted, trimmed) &&
			strings.Contains(r.String("|"+secret+"|"), trimmed) {
			t.Errorf("String leaves %q", secret)
		}
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := text; rest != ""; {
			n := min(len(rest), max(1, piece))
			_, _ = io.WriteString(w, rest[:n])
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if len(text) < 64<<10 && once(out.String()) != once(want) {
			t.Errorf("in pieces %q, at once %q", out.String(), want)
		}
	})
}

func BenchmarkRedactorWriter(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	var secrets []string
	for i := range 200 {
		secrets = append(secrets, corpusSecret(random, i))
	}
	r := redact.New(append(secrets, r4k(random)))
	line := "aws_eks_node_group.this[\"blue\"]: Still creating... [id=prod-eu:blue, 00m30s elapsed]\n"
	chunk := []byte(strings.Repeat(line, 400))
	for name, n := range map[string]int{"32KB": len(chunk), "line": len(line)} {
		b.Run(name, func(b *testing.B) {
			w := r.Writer(io.Discard)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Write(chunk[:n]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func r4k(random *rand.Rand) string {
	raw := make([]byte, 3000)
	for i := range raw {
		raw[i] = byte(random.UintN(256))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// A sensitive document names things that are not secrets: the endpoint of a cluster
// is in its kubeconfig, too.
func TestWordsOfDocumentsAreNotSecrets(t *testing.T) {
	t.Parallel()
	const endpoint = "https://dev-local.platform.clusters.example.internal:6443"
	r := redact.New([]string{"apiVersion: v1\nkind: Config\nclusters:\n- cluster: {server: \"" + endpoint + "\"}\n  name: a\n" +
		"users:\n- user:\n    token: t0psecret-0123456789abcdef\n"})
	if got := r.String("endpoint = " + endpoint); got != "endpoint = "+endpoint {
		t.Errorf("the endpoint is %q", got)
	}
}

// A piece of a token is secret in each of its forms, whatever characters the token
// has: that a plus or an escape is elsewhere in it does not make it text.
func TestPiecesOfTokensAreSecret(t *testing.T) {
	t.Parallel()
	const before, after = "0123456789abcdefghij", "klmnopqrstuvwxyz9876"
	for _, odd := range []string{"<", "&", `"`, `\`, "'", "ö", "%", "-"} {
		for _, elsewhere := range []string{"+", "%20", "+%2B", "-+-", "+++++++++"} {
			part := before + odd + after
			r := redact.New([]string{part + elsewhere + before})
			for _, encoder := range slices.Sorted(maps.Keys(encoders)) {
				if strings.HasPrefix(encoder, "base64") { // how a part of it looks depends on where it begins
					continue
				}
				piece := encoders[encoder](part)
				if got := r.String("part " + piece + " of it"); strings.Contains(got, piece) {
					t.Errorf("%q with %q, %s: a piece of it is in %q", part, elsewhere, encoder, got)
				}
			}
		}
	}
}

// The words of a text that was escaped for URLs are not secrets, what is around its
// escapes is.
func TestPiecesOfEscapedText(t *testing.T) {
	t.Parallel()
	const host = "dev-local.platform.clusters.example.internal"
	for _, text := range []string{"the server is " + host + " as before", "{server:" + host + "}", "server\n" + host + "\nuser\n"} {
		r := redact.New([]string{text})
		if got := r.String("host = " + host); !strings.Contains(text, "\n") && got != "host = "+host {
			t.Errorf("the host in %q is %q", text, got)
		}
		for _, escaped := range []string{url.QueryEscape(text), url.PathEscape(text), percent(text), strings.ToLower(percent(text))} {
			piece := escaped[:len(escaped)-2]
			if got := r.String("= " + piece); strings.Contains(got, piece) {
				t.Errorf("a piece of %q is in %q", escaped, got)
			}
		}
	}
}
