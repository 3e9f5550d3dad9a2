package server_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-dev/holdfast/server"
)

// A name that somebody else points at this machine gets nothing.
func TestHosts(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for address, loopback := range map[string]bool{
		"127.0.0.1:8081": true, "[::1]:8081": true, "localhost:8081": true, "0.0.0.0:8081": false, ":8081": false,
	} {
		url := serve(t, newServer(t, newWorld(), func(o *server.Options) {
			o.Listen.API.Address, o.API.Hosts, o.Health.Metrics = address, []string{"holdfast.example.com"}, metrics
		}).API())
		for host, known := range map[string]bool{
			"": true, "localhost": true, "localhost:8081": true, "127.0.0.1": true, "[::1]:8081": true, "10.0.0.1:8081": true,
			"holdfast.example.com": true, "Holdfast.Example.com:443": true,
			"evil.example.com": false, "localhost.evil.example.com": false, "127.0.0.1.evil.example.com:8081": false,
		} {
			for _, path := range []string{"/readyz", "/metrics"} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = host
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if refused := res.StatusCode == http.StatusMisdirectedRequest; refused != (loopback && !known) {
					t.Errorf("%s at %s as %q = %d", path, address, host, res.StatusCode)
				}
			}
		}
	}
}
