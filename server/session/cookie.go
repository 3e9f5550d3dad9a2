package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
)

// cookieName begins as browsers demand of a cookie that no other host and no page over plain
// HTTP can have set.
const cookieName = "__Host-holdfast-session"

// setCookie sets or, with an age below zero, removes the cookie. It is lax: links of comments
// lead to pages of people who have logged in.
func setCookie(w http.ResponseWriter, id string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: id, Path: "/", MaxAge: int(age.Seconds()), Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

func cookieOf(r *http.Request) string {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// NewID is what nobody guesses: 32 random bytes as text.
func NewID() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// The names under which forms and scripts give the token of a session back.
const (
	FormField  = "csrf"
	FormHeader = "X-CSRF-Token"
)

// maxForm bounds the body of a form, in bytes.
const maxForm = 1 << 20

// FormToken is what forms of a person who has logged in must have: another site cannot
// read it. It stays the same as long as the session does. It is empty for whoever has
// shown a token.
func (s *Sessions) FormToken(who access.Principal) string {
	if who.Via != access.ViaSession {
		return ""
	}
	mac := hmac.New(sha256.New, s.opts.Key)
	mac.Write([]byte("form " + who.ID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Guard is an ErrForbidden if a request that changes something may be another site's doing:
// browsers send a cookie whoever asks for it. One that has shown a token cannot be.
func (s *Sessions) Guard(w http.ResponseWriter, r *http.Request, who access.Principal) error {
	if who.Via != access.ViaSession || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if err := s.SameSite(r); err != nil {
		return err
	}
	given := r.Header.Get(FormHeader)
	if given == "" && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		given = r.PostFormValue(FormField)
	}
	if !hmac.Equal([]byte(given), []byte(s.FormToken(who))) {
		return holdfast.ErrorOf(holdfast.ErrForbidden, "this form belongs to another session: reload its page")
	}
	return nil
}

// SameSite is an ErrForbidden if the browser says that another site makes the request.
func (s *Sessions) SameSite(r *http.Request) error {
	if err := s.cross.Check(r); err != nil {
		return holdfast.ErrorOf(holdfast.ErrForbidden, "this request comes from another site")
	}
	return nil
}

// Address is from where a request comes.
func Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if list := r.Header.Values("X-Forwarded-For"); len(list) > 0 {
		// Whoever asks can have written it: it is shown as what was said.
		all := strings.Split(list[len(list)-1], ",")
		host += " for " + Clean(strings.TrimSpace(all[len(all)-1]), 60)
	}
	return host
}

// Origin is from where somebody asks, and what was shown, for the audit trail.
func Origin(r *http.Request, who access.Principal) string {
	text := fmt.Sprintf("%s, %s %s", Address(r), who.Via, who.ID)
	if !who.Person.IsZero() {
		text += " of " + who.Person.String()
	}
	return text
}

// Clean leaves out what is not printable, and what is beyond a number of bytes: names and
// programs call themselves what they like.
func Clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
