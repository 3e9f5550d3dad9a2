package runnerdoc

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// What others call their things. How long it may be is a separate check: to compile a
// counted repetition takes time at each start of the program.
var (
	subdomain   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`) // of Kubernetes
	region      = regexp.MustCompile(`^[a-z]{2}[a-z-]*-[0-9]{1,2}$`)                                      // of AWS
	roleARN     = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+$`)
	secretARN   = regexp.MustCompile(`^arn:aws[a-z-]*:(secretsmanager|ssm):[a-z0-9-]+:[0-9]{12}:\S+$`)
	sessionName = regexp.MustCompile(`^[\w+=,.@-][\w+=,.@-]+$`)
	variable    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	image       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)
)

// reservedPrefix begins the names of variables that are ours.
const reservedPrefix = "HOLDFAST_"

// longest is how long what others name may be.
const longest = 2048

func validGlob(pattern string) bool { return pattern != "" && doublestar.ValidatePattern(pattern) }

func isSubdomain(text string) bool { return len(text) <= 253 && subdomain.MatchString(text) }

// badVariable is what is wrong with the name of a variable; empty if nothing is.
func badVariable(name string) (message, hint string) {
	switch {
	case !variable.MatchString(name):
		return "is not the name of an environment variable", ""
	case strings.HasPrefix(name, reservedPrefix):
		return "is reserved", "names that begin with " + reservedPrefix + " are Holdfast's own"
	}
	return "", ""
}

// validPrefix reports whether a text is a folder of a bucket.
func validPrefix(prefix string) bool {
	return !strings.HasPrefix(prefix, "/") && len(prefix) <= 512 && !strings.ContainsAny(prefix, "\\\x00 ") &&
		!slices.ContainsFunc(strings.Split(strings.TrimSuffix(prefix, "/"), "/"), func(part string) bool {
			return part == "" || part == "." || part == ".."
		})
}

// matching returns text that a check accepts; what is wrong is said with its hint.
func (r reader) matching(o *decode.Object, key string, required bool, is func(string) bool, what, hint string) string {
	text := ""
	if required {
		text = o.Required(key)
	} else {
		text = o.Text(key)
	}
	if text != "" && (!is(text) || len(text) > longest) {
		r.Add(o.Get(key), fmt.Sprintf("%s %q is not %s", o.Label(key), wording.Clip(text), what), hint)
	}
	return text
}

func (r reader) objectName(o *decode.Object, key string, required bool) string {
	return r.matching(o, key, required, isSubdomain, "a name of Kubernetes", "use a-z, 0-9, - and . inside")
}

func (r reader) role(o *decode.Object, key string) string {
	return r.matching(o, key, true, roleARN.MatchString, "the ARN of a role", "such as arn:aws:iam::123456789012:role/holdfast")
}

func (r reader) region(o *decode.Object, key string, required bool) string {
	return r.matching(o, key, required, region.MatchString, "a region of AWS", "such as eu-central-1")
}

func (r reader) session(o *decode.Object) string {
	return r.matching(o, "sessionName", false, sessionName.MatchString, "the name of a session", "2 to 64 letters, digits and + = , . @ -")
}

func (r reader) image(o *decode.Object) string {
	return r.matching(o, "image", false, image.MatchString, "the name of an image", "such as registry.example.com/holdfast:1.0")
}

// url reads an address with one of the schemes and without credentials. No fault repeats
// it: it may have a password.
func (r reader) url(o *decode.Object, key string, required bool, schemes ...string) string {
	text := ""
	if required {
		text = o.Required(key)
	} else {
		text = o.Text(key)
	}
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme):
		r.Add(o.Get(key), o.Label(key)+" is not a URL of the form "+strings.Join(schemes, " or ")+"://HOST", "")
	case u.User != nil:
		r.Add(o.Get(key), o.Label(key)+" carries credentials", "remove them, and replace them where they are valid: anyone who can read the repository has them")
	}
	return text
}

// certificates reads certificates in PEM.
func (r reader) certificates(o *decode.Object, key string) string {
	text := o.Text(key)
	rest := []byte(text)
	for n := 0; text != ""; n++ {
		block, after := pem.Decode(rest)
		if block == nil {
			if n == 0 || strings.TrimSpace(string(rest)) != "" {
				r.Add(o.Get(key), o.Label(key)+" is not a certificate in PEM", "write it as a block (|), from -----BEGIN CERTIFICATE----- on")
			}
			break
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			r.Add(o.Get(key), o.Label(key)+" has a private key in it", replaceKey)
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
			r.Add(o.Get(key), o.Label(key)+" has something in it that is not a certificate", "")
			break
		}
		rest = after
	}
	return text
}

const replaceKey = "remove it, and create another one: anyone who can read the repository has it"

// keys reads Ed25519 public keys.
func (r reader) keys(o *decode.Object) []string {
	texts, nodes := o.Strings("keys")
	known := make(map[string]int)
	for i, text := range texts {
		label := fmt.Sprintf("spec.keys[%d]", i)
		block, rest := pem.Decode([]byte(text))
		if block != nil && strings.Contains(block.Type, "PRIVATE KEY") {
			r.Add(nodes[i], label+" is a private key", replaceKey+"; here belongs the public key")
			continue
		}
		if block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
			r.Add(nodes[i], label+" is not one public key in PEM", "write it as a block (|), from -----BEGIN PUBLIC KEY----- on")
			continue
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		key, is := parsed.(ed25519.PublicKey)
		if err != nil || !is {
			r.Add(nodes[i], label+" is not an Ed25519 key", "openssl genpkey -algorithm ed25519 makes one, openssl pkey -pubout prints its public key")
			continue
		}
		if first, twice := known[string(key)]; twice {
			r.Add(nodes[i], fmt.Sprintf("%s is that of spec.keys[%d]", label, first), "remove one")
			continue
		}
		known[string(key)] = i
	}
	return texts
}

// secretHint says which secret was meant, perhaps.
func (r reader) secretHint(name, otherwise string) string {
	if near := nearest.Of(name, r.opts.Secrets); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}
