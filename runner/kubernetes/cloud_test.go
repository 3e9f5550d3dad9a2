package kubernetes

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// cloud stands for one that says where an API server is.
type cloud struct {
	mu               sync.Mutex
	server           *httptest.Server
	life             time.Duration
	err              error
	endpoints, tokes int
	kept             bool // tokens are the same until one is refused
}

func (c *cloud) Endpoint(context.Context) (string, []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints++
	return c.server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw}), c.err
}

func (c *cloud) Token(_ context.Context, refused string) (string, time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokes++; c.kept && refused == "" {
		c.tokes = max(c.tokes-1, 1)
	}
	return strings.Repeat("t", c.tokes), time.Now().Add(c.life), c.err
}

// apiServer answers with the token and the body that it got; 401 for those that refuse says.
func apiServer(t *testing.T, refuse func(token string) bool) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if refuse != nil && refuse(token) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.URL.Path+" "+token+" "+string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func say(t *testing.T, r *route, body string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, placeholder+"/apis", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := r.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return answer.Status, err
	}
	return string(text), err
}

func TestTokensOfACloudAreRenewed(t *testing.T) {
	t.Parallel()
	c := &cloud{server: apiServer(t, nil), life: time.Hour}
	r := newRoute(c, nil)
	for range 3 {
		if got, err := say(t, r, "x"); err != nil || got != "/apis t x" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	c.mu.Lock()
	c.life = 0 // what is made from now on is not to be used twice
	c.mu.Unlock()
	r.known.until = time.Now().Add(-time.Second)
	for _, want := range []string{"/apis tt x", "/apis ttt x"} {
		if got, err := say(t, r, "x"); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if c.endpoints != 1 {
		t.Errorf("the cloud was asked %d times where the API server is", c.endpoints)
	}
}

// A token that is refused in the middle of its life is replaced, and the request sent again
// with its body; one that was made just now is not.
func TestTokenOfACloudThatIsRefused(t *testing.T) {
	t.Parallel()
	c := &cloud{server: apiServer(t, func(token string) bool { return token == "t" }), life: time.Hour, kept: true}
	r := newRoute(c, nil)
	if got, err := say(t, r, "x"); err != nil || !strings.HasPrefix(got, "401") || c.tokes != 1 {
		t.Errorf("a fresh one: %q, %v, %d tokens", got, err, c.tokes)
	}
	r.known.made = time.Now().Add(-time.Minute)
	if got, err := say(t, r, "x"); err != nil || got != "/apis tt x" {
		t.Errorf("an old one: %q, %v", got, err)
	}
}

// An API server that is gone is looked for again, once it was known for a while.
func TestAPIServerOfACloudThatMoves(t *testing.T) {
	t.Parallel()
	c := &cloud{server: apiServer(t, nil), life: time.Hour}
	r := newRoute(c, nil)
	if _, err := say(t, r, ""); err != nil {
		t.Fatal(err)
	}
	c.server.Close()
	moved := apiServer(t, nil)
	c.mu.Lock()
	c.server = moved
	c.mu.Unlock()
	if got, err := say(t, r, ""); err == nil {
		t.Fatalf("it is gone and says %q", got)
	}
	if c.endpoints != 1 {
		t.Errorf("it was looked for at once: %d times", c.endpoints)
	}
	r.known.way.found = time.Now().Add(-time.Minute)
	if _, err := say(t, r, ""); err == nil {
		t.Fatal("it is still gone")
	}
	if got, err := say(t, r, ""); err != nil || got != "/apis t " {
		t.Errorf("got %q, %v", got, err)
	}
}

// A cloud that refuses is not asked for each request, and its reason is that of the call.
func TestCloudThatRefuses(t *testing.T) {
	t.Parallel()
	c := &cloud{server: apiServer(t, nil), err: &protocol.LaunchError{Reason: holdfast.CauseCloudIdentityRefused, Err: errors.New("no")}}
	cluster, err := Open(Options{
		Runner: runnerspec.Runner{Name: "east", Job: &runnerspec.Job{Namespace: "runs", Image: "holdfast"}},
		Access: Access{Cloud: &CloudServer{Cloud: c}}, Agent: Agent{ServerURL: "https://holdfast"}, Installation: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		err := cluster.Look(t.Context())
		var refused *protocol.LaunchError
		if !errors.As(err, &refused) || refused.Reason != holdfast.CauseCloudIdentityRefused {
			t.Fatalf("got %v", err)
		}
	}
	if c.endpoints != 1 {
		t.Errorf("it was asked %d times", c.endpoints)
	}
}
