package engine

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// NetworkVariables are the environment variables that say through which proxies hosts are
// reached, and which certificates are trusted. A download of an engine needs them, and so
// do engines.
func NetworkVariables() []string {
	return []string{
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR",
	}
}

// minProxyToken is the length, in bytes, from which what stands before the host of a proxy
// without a password is a token, and no name of a user.
const minProxyToken = 16

// ProxySecrets are what nobody is to read of an environment's proxies: the URLs that have a
// password in them, and the password, as written there and as proxies get it.
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
