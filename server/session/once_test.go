package session_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/server/session"
)

// TestOnce: a code begins one session, within its time, and is not a cookie itself; whoever
// has shown anything but a token of the configuration gets none.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	once := func(who access.Principal) string {
		t.Helper()
		path, until, err := s.sessions.Once(t.Context(), who)
		if err != nil || !until.Equal(s.time().Add(10*time.Minute)) || !strings.HasPrefix(path, session.OncePath+"?code=") {
			t.Fatalf("%s until %s, %v", path, until, err)
		}
		_, code, _ := strings.Cut(path, "code=")
		return code
	}
	who := access.Principal{Name: "anna", ID: "anna", Via: access.ViaToken}
	use := func(b *browser, code string) int {
		return b.do("POST", session.OncePath, url.Values{"code": {code}}).status
	}
	status := func(b *browser) int { return b.do("GET", "/", nil).status }

	code := once(who)
	b := s.browser(t)
	if got := b.do("GET", session.OncePath+"?code="+code, nil); got.status != http.StatusOK || got.header.Get("Set-Cookie") != "" || !strings.Contains(got.body, `name="code" value="`+code) {
		t.Fatalf("a look at the link: %d", got.status)
	}
	if got := s.browser(t).do("GET", "/", nil, "Cookie", cookieName+"="+code); got.status != http.StatusUnauthorized {
		t.Errorf("the code as a cookie: %d", got.status)
	}
	if got := use(b, code); got != http.StatusSeeOther || status(b) != http.StatusOK {
		t.Errorf("the code = %d, then %d", got, status(b))
	}
	if other := s.browser(t); use(other, code) != http.StatusUnauthorized || status(other) != http.StatusUnauthorized {
		t.Error("the code was good twice")
	}
	late := once(who)
	s.advance(10 * time.Minute)
	if got := use(s.browser(t), late); got != http.StatusUnauthorized {
		t.Errorf("a code that is too old = %d", got)
	}
	if got := use(s.browser(t), "nonsense"); got != http.StatusUnauthorized {
		t.Errorf("no code = %d", got)
	}
	for _, via := range []access.Via{access.ViaPersonal, access.ViaSession, ""} {
		if _, _, err := s.sessions.Once(t.Context(), access.Principal{Name: "anna", ID: "anna", Via: via}); err == nil {
			t.Errorf("whoever shows %q gets a code", via)
		}
	}

	race := once(who)
	var wait sync.WaitGroup
	good := make(chan int, 8)
	for range cap(good) {
		other := s.browser(t)
		wait.Go(func() { good <- use(other, race) })
	}
	wait.Wait()
	close(good)
	won := 0
	for got := range good {
		if got == http.StatusSeeOther {
			won++
		}
	}
	if won != 1 {
		t.Errorf("of 8 at once %d have begun a session", won)
	}
}
