package engine

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// NetworkVariables are the environment variables for proxies and for trusted
// certificates. A download of an engine needs them, and so do engines.
func NetworkVariables() []string {
	return []string{
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR",
	}
}

// minProxyToken is the length, in bytes, from which the user of a proxy's URL without a
// password is a token, and not a user name.
const minProxyToken = 16

// ProxySecrets are the secrets in an environment's proxies: the URLs that have a password
// in them, and the password, as written there and as proxies get it.
func ProxySecrets(env map[string]string) []string {
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			continue
		}
		_, rest, found := strings.Cut(env[name], "://")
		if !found {
			rest = env[name]
		}
		at := max(strings.LastIndexByte(rest, '@'), 0)
		user, password, _ := strings.Cut(rest[:at], ":")
		secret := password
		if password == "" && len(user) >= minProxyToken {
			secret = user
		}
		if secret == "" {
			continue
		}
		secrets = append(secrets, env[name], secret)
		plainUser, errUser := url.PathUnescape(user)
		plain, err := url.PathUnescape(password)
		if errUser == nil && err == nil {
			secrets = append(secrets, plainUser+":"+plain) // encoded as one in a header
		}
		if plain, err := url.PathUnescape(secret); err == nil {
			secrets = append(secrets, plain)
		}
	}
	return secrets
}
