package githubserver

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault is an answer that GitHub gives instead of the asked one.
type Fault struct {
	Status int
	Header map[string]string
	Body   string
	// After is true if the call has its effect all the same: the answer is what
	// gets lost.
	After bool
	// Hang makes the answer wait until the client gives up.
	Hang bool
}

type fault struct {
	Fault
	n     int
	route string
}

// The faults in the shapes in which GitHub shows them.
var (
	Unauthorized  = Fault{Status: 401, Body: `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest"}`}
	Forbidden     = Fault{Status: 403, Body: `{"message":"Resource not accessible by integration","documentation_url":"https://docs.github.com/rest"}`}
	NotFound      = Fault{Status: 404, Body: `{"message":"Not Found","documentation_url":"https://docs.github.com/rest"}`}
	Unprocessable = Fault{Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"IssueComment","code":"unprocessable","field":"data","message":"Body is too long (maximum is 65536 characters)"}],"documentation_url":"https://docs.github.com/rest"}`}
	BadGateway    = Fault{Status: 502, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html><body><h1>502 Bad Gateway</h1></body></html>"}
	HTML          = Fault{Status: 200, Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}, Body: "<!DOCTYPE html><html><title>Sign in</title></html>"}
	Garbage       = Fault{Status: 200, Header: map[string]string{"Content-Type": "application/json"}, Body: `{"id": 1, "nod`}
	Hang          = Fault{Hang: true}
)

// SecondaryLimit is the abuse limit's answer. With a zero retryAfter GitHub
// does not say when to come back.
func SecondaryLimit(retryAfter time.Duration) Fault {
	f := Fault{Status: 403, Header: map[string]string{}, Body: `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`}
	if retryAfter > 0 {
		f.Header["Retry-After"] = strconv.Itoa(int(retryAfter / time.Second))
	}
	return f
}

// TooManyRequests is the same as a 429.
func TooManyRequests(retryAfter time.Duration) Fault {
	f := SecondaryLimit(retryAfter)
	f.Status = 429
	return f
}

// PrimaryLimit is the answer when the hour's quota is used up.
func PrimaryLimit(reset time.Time) Fault {
	return Fault{
		Status: 403,
		Header: map[string]string{
			"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0",
			"X-RateLimit-Reset": strconv.FormatInt(reset.Unix(), 10),
		},
		Body: `{"message":"API rate limit exceeded for installation ID 815.","documentation_url":"https://docs.github.com/rest/overview/resources-in-the-rest-api#rate-limiting"}`,
	}
}

// Fail makes the next n calls fail whose "METHOD /pattern" begins with route;
// an empty route means any call.
func (s *Server) Fail(n int, route string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{Fault: f, n: n, route: route})
}

// Recover ends all faults that are still to come.
func (s *Server) Recover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// FailedCount returns how many calls were given a fault for an answer.
func (s *Server) FailedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// takeFault returns the fault for a call of route, if there is one.
func (s *Server) takeFault(route string) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.n > 0 && strings.HasPrefix(route, f.route) {
			f.n--
			s.failed++
			return f.Fault, true
		}
	}
	return Fault{}, false
}

func (f Fault) answer(w http.ResponseWriter, r *http.Request) {
	if f.Hang {
		<-r.Context().Done()
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	for key, value := range f.Header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(f.Status)
	_, _ = fmt.Fprint(w, f.Body)
}
