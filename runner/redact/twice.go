// Secrets in base64 of base64.

package redact

import (
	"encoding/base64"

	"github.com/holdfast-dev/holdfast"
)

// minTwice is how long the base64 of base64 of a secret is at least.
const minTwice = 15

// inAlphabet are the characters of base64, for URLs too, with what they stand for.
var inAlphabet = func() (in [256]byte) { //nolint:gochecknoglobals // a constant table
	for c := range in {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
			in[c] = byte(c)
		case c == '-':
			in[c] = '+'
		case c == '_':
			in[c] = '/'
		}
	}
	return in
}()

// decodeTwice appends text to dst with "(sensitive value)" in the place of words that are
// base64 of base64 with a known secret in it, such as a kubeconfig that is the value of a
// Kubernetes secret, and reports whether there was one. Forms of these would make the
// search several times slower; hardly a word is base64 of what is again in its alphabet.
// Of a word that is wrapped each line is looked at alone, from 15 characters on.
func (f *finder) decodeTwice(dst, text []byte) ([]byte, bool) {
	if f.bare.empty() && f.plain.empty() {
		return append(dst, text...), false
	}
	copied := 0
	f.twice(text, func(s span) {
		dst = append(append(dst, text[copied:s.from]...), holdfast.SensitiveValue...)
		copied = s.to
	})
	return append(dst, text[copied:]...), copied > 0
}

// twice calls found with each such word of a text.
func (f *finder) twice(text []byte, found func(span)) {
	var word, inner []byte
	for i := 0; i < len(text); {
		if inAlphabet[text[i]] == 0 {
			i++
			continue
		}
		from := i
		for i < len(text) && inAlphabet[text[i]] != 0 {
			i++
		}
		if i-from < minTwice {
			continue
		}
		for shift := range 4 { // an escape such as \n may have left a letter before it
			if !startsTwice(text[from+shift : i]) {
				continue
			}
			word = word[:0]
			for _, c := range text[from+shift : i] {
				word = append(word, inAlphabet[c])
			}
			word = word[:len(word)-len(word)%4+[]int{0, 0, 2, 3}[len(word)%4]]
			inner, _ = base64.RawStdEncoding.AppendDecode(inner[:0], word)
			if _, secret := f.replace(nil, inner); !secret {
				continue
			}
			for i < len(text) && text[i] == '=' {
				i++
			}
			found(span{from, i})
			break
		}
	}
}

// startsTwice reports whether a word begins as base64 of base64 does.
func startsTwice(word []byte) bool {
	if len(word) < minTwice {
		return false
	}
	var coded [4]byte
	var first [3]byte
	for at := 0; at < 12; at += 4 {
		for i := range coded {
			coded[i] = inAlphabet[word[at+i]]
		}
		if _, err := base64.RawStdEncoding.Decode(first[:], coded[:]); err != nil {
			return false
		}
		for _, c := range first {
			if inAlphabet[c] == 0 {
				return false
			}
		}
	}
	return true
}
