package server_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/server"
)

// A name that somebody else points at this machine gets nothing over loopback, wherever
// the API listens; who comes from elsewhere uses whatever name leads here.
func TestHosts(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, address := range []string{"127.0.0.1:8081", "0.0.0.0:8081", ":8081"} {
		api := newServer(t, newWorld(), func(o *server.Options) {
			o.Listen.API.Address, o.API.Hosts, o.Health.Metrics = address, []string{"holdfast.example.com"}, metrics
		}).API()
		url := serve(t, api)
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
				res, err := ownclient.Client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if refused := res.StatusCode == http.StatusMisdirectedRequest; refused == known {
					t.Errorf("%s at %s as %q = %d", path, address, host, res.StatusCode)
				}
				from := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 8081}
				answer := httptest.NewRecorder()
				api.ServeHTTP(answer, req.Clone(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(from))))
				if answer.Code == http.StatusMisdirectedRequest {
					t.Errorf("%s from elsewhere as %q = %d", path, host, answer.Code)
				}
			}
		}
	}
}
