// Package ownclient is an HTTP client for tests. Whenever an httptest.Server closes, it
// closes the idle connections of http.DefaultTransport, even one that another test has just
// taken for its next request, which then fails.
package ownclient

import "net/http"

// Client has its own connections, and otherwise the defaults of http.DefaultClient: no
// deadline, and up to ten redirects.
var Client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()} //nolint:forcetypeassert // it is one
