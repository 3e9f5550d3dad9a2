package pages

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/console"
)

// saidCookie keeps the result of a form until the page that it leads back to is shown: a
// form is answered by a redirect, so that nothing is done twice by going back or reloading.
const saidCookie = "__Host-holdfast-said"

const (
	saidFor  = time.Minute
	saidMost = 1200 // bytes of each of its texts: browsers keep cookies of 4 kB
)

// said is what the cookie has.
type said struct {
	At     string `json:"a"` // the page that it is for
	Tone   string `json:"t"`
	Title  string `json:"i"`
	Why    string `json:"w,omitempty"`
	Hint   string `json:"h,omitempty"`
	Line   string `json:"c,omitempty"`
	Label  string `json:"l,omitempty"`
	Target string `json:"g,omitempty"`
}

// keep makes the page at a path of ours say something, once.
func keep(w http.ResponseWriter, at string, alert console.Alert) {
	part := func(text string, most int) string {
		if len(text) <= most {
			return text
		}
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		return text[:most] + "…"
	}
	data, _ := json.Marshal(said{ // texts: cannot fail
		At: pathOf(at), Tone: alert.Tone, Title: part(alert.Title, saidMost/2), Why: part(alert.Why, saidMost), Hint: part(alert.Hint, saidMost/4), Line: part(alert.Command, saidMost/4),
		Label: alert.Action.Label, Target: alert.Action.Href,
	})
	setSaid(w, base64.RawURLEncoding.EncodeToString(data), saidFor)
}

func setSaid(w http.ResponseWriter, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Value: value, Path: "/", MaxAge: int(age.Seconds()), Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// saidTo returns, and removes, what a page has to say, if the request is for the whole
// page.
func saidTo(w http.ResponseWriter, r *http.Request) *console.Alert {
	cookie, err := r.Cookie(saidCookie)
	if err != nil || r.Header.Get("HX-Request") != "" {
		return nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	var s said
	if err != nil || json.Unmarshal(data, &s) != nil || s.At != r.URL.Path {
		return nil
	}
	setSaid(w, "", -1)
	alert := &console.Alert{Tone: s.Tone, Title: s.Title, Why: s.Why, Hint: s.Hint, Command: s.Line}
	if s.Target != "" {
		alert.Action = console.Action{Label: s.Label, Href: LocalPath(s.Target)}
	}
	return alert
}

// pathOf is an address of ours without its query, as a request for it has it.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Path
}
