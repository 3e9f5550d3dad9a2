package pages

import (
	"net/http"
	"strings"
)

// themeCookie keeps which colours a browser shows. The server reads it, so that no page
// begins in the wrong ones.
const themeCookie = "holdfast_theme"

// theme is light, dark, or empty: as the system has it.
func theme(r *http.Request) string {
	cookie, err := r.Cookie(themeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}

// setTheme keeps which colours are wanted, and goes back. Toggle is for the button that is
// on each page: without script it cannot know what the system has, and begins with dark.
func (p *Pages) setTheme(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	want := r.PostFormValue("theme")
	if want == "toggle" {
		want = map[string]string{"dark": "light", "": "dark", "light": "dark"}[theme(r)]
	}
	cookie := &http.Cookie{Name: themeCookie, Value: want, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if want != "light" && want != "dark" {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, LocalPath(r.PostFormValue("back")), http.StatusSeeOther)
}

// LocalPath is where a person is sent back to: always a path of this server, as anybody
// can write it.
func LocalPath(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}
