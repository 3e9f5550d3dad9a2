package location

import (
	"cmp"
	"net"
	"net/url"
	"strings"
)

// database names a PostgreSQL database by a connection string in either of its forms,
// as host:port/name: whoever signs in sees the same one. What the string does not say
// comes from the environment, and is that of the scope.
func database(conn, scope string) string {
	var settings map[string]string
	if strings.HasPrefix(conn, "postgres://") || strings.HasPrefix(conn, "postgresql://") {
		u, err := url.Parse(conn)
		if err != nil {
			return "unreadable " + digest(conn)
		}
		settings = ofAddress(u)
	} else {
		var ok bool
		if settings, ok = ofWords(conn); !ok {
			return "unreadable " + digest(conn)
		}
	}
	host, name := settings["host"], cmp.Or(settings["dbname"], settings["database"])
	if settings["hostaddr"] != "" {
		host = settings["hostaddr"]
	}
	if settings["service"] != "" {
		host = cmp.Or(host, "service "+settings["service"])
	}
	if host == "" && name == "" {
		return "of " + scope
	}
	text := net.JoinHostPort(strings.ToLower(host), cmp.Or(settings["port"], "5432")) + "/" + name
	if host == "" || name == "" {
		text += " of " + scope
	}
	return text
}

func ofAddress(u *url.URL) map[string]string {
	settings := map[string]string{
		"host": u.Hostname(), "port": u.Port(), "dbname": strings.TrimPrefix(u.Path, "/"),
	}
	if strings.Contains(u.Host, ",") { // several hosts, each with its port
		settings["host"], settings["port"] = u.Host, ""
	}
	for name, values := range u.Query() {
		settings[name] = values[len(values)-1]
	}
	return settings
}

// ofWords reads a connection string of keywords and values, such as host=h dbname='d'.
func ofWords(conn string) (settings map[string]string, ok bool) {
	settings = make(map[string]string)
	for rest := strings.TrimSpace(conn); rest != ""; rest = strings.TrimSpace(rest) {
		name, after, found := strings.Cut(rest, "=")
		if !found {
			return nil, false
		}
		value, left, closed := word(strings.TrimSpace(after))
		if !closed {
			return nil, false
		}
		settings[strings.TrimSpace(name)], rest = value, left
	}
	return settings, true
}

// word takes the first value off a text: to the next space, or in quotes; a backslash
// escapes a character.
func word(text string) (value, rest string, closed bool) {
	quoted := strings.HasPrefix(text, "'")
	if quoted {
		text = text[1:]
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		case quoted && c == '\'', !quoted && (c == ' ' || c == '\t' || c == '\n'):
			return out.String(), text[i+1:], true
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), "", !quoted
}
