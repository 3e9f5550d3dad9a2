package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A machine reaches other hosts through a proxy, which only the server's environment names:
// agents that the server starts download engines through it, and engines what they need.
func TestProxyOfTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{
		"runs.retries": 0, "engines.download": true, "engines.terraformMirror": "http://engines.invalid", "engines.tofuMirror": "http://engines.invalid",
	})
	var mu sync.Mutex
	asked := make(map[string]bool)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.Host] = true
		http.Error(w, "not today", http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	w.under = []string{"env", "http_proxy=" + proxy.URL}
	w.start()
	w.fleet().open(join(
		document("alpha"), moduleFile("alpha", "module \"net\" {\n  source = \"http://modules.invalid/net.zip\"\n}\n"),
		document("beta"), moduleFile("beta", "terraform {\n  required_version = \"99.1.1\"\n}\n"),
	))
	for _, host := range []string{"modules.invalid", "engines.invalid"} {
		w.until("the proxy is asked for "+host, func() (bool, string) {
			mu.Lock()
			defer mu.Unlock()
			return asked[host], fmt.Sprint(asked)
		})
	}
}
