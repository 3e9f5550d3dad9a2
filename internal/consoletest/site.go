package consoletest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/internal/consoletest/world"
	"github.com/holdfast-dev/holdfast/server/pages"
)

// Now is the moment at which the invented fleet is looked at.
var Now = time.Date(2026, 11, 30, 14, 5, 0, 0, time.UTC)

// Site returns a handler with the console over an invented fleet.
func Site(opts world.Options) (http.Handler, error) {
	opts.Now = Now
	fleet := world.New(opts)
	shown, err := pages.New(pages.Options{API: fleet, Version: "1.0.0", Now: func() time.Time { return Now }, Newest: fleet.Newest})
	if err != nil {
		return nil, fmt.Errorf("consoletest: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", fleet)
	mux.Handle("/", shown)
	for path, view := range map[string]console.LoginView{
		"GET /login": {Next: "/", Failed: "Unknown token.", Provider: "Example ID"}, "GET /login/once": {Next: "/", Code: "code"},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { shown.Login(w, r, http.StatusOK, view) })
	}
	return mux, nil
}

// Pages are the addresses of all pages of the invented fleet, by a name for their pictures.
func Pages() map[string]string {
	return map[string]string{
		"fleet": "/", "fleet-filtered": "/?environment=prod&drift=drifted", "fleet-search": "/?q=payments+prod", "fleet-empty": "/?q=nothing-like-this",
		"cluster": "/clusters/payments-prod-eu-1", "cluster-failed": "/clusters/ledger-prod-eu-4", "cluster-waiting": "/clusters/search-prod-us-14",
		"cluster-resources": "/clusters/payments-prod-eu-1?tab=resources", "cluster-outputs": "/clusters/payments-prod-eu-1?tab=outputs",
		"cluster-runs": "/clusters/payments-prod-eu-1?tab=runs", "cluster-history": "/clusters/payments-prod-eu-1?tab=history", "cluster-change": "/clusters/payments-prod-eu-1/change", "new": "/new", "new-form": "/new?template=eks&version=4.2.0&cluster=payments-new&project=payments&environment=prod", "new-gone": "/new?template=eks&version=9.9.9&v.node_count=7",
		"cluster-drift": "/clusters/payments-prod-eu-1?tab=drift",
		"run":           "/runs/r4812", "run-failed": "/runs/r4807", "run-search": "/runs/r4812?find=elapsed",
		"pullrequests": "/pullrequests", "pullrequest": "/pullrequests/479/fleet", "pullrequest-removal": "/pullrequests/470/fleet",
		"queue": "/queue", "drift": "/drift", "templates": "/templates", "template": "/templates/eks", "audit": "/audit", "deliveries": "/deliveries", "settings": "/settings", "missing": "/clusters/nobody", "login": "/login", "login-once": "/login/once",
	}
}
