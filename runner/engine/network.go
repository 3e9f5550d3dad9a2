package engine

// NetworkVariables are the environment variables that say through which proxies hosts are
// reached, and which certificates are trusted. A download of an engine needs them, and so
// do engines.
func NetworkVariables() []string {
	return []string{
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR",
	}
}
