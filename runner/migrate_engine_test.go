//go:build !race

package runner_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/objectserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner"
)

// somewhere is a place for states: how code says it, and how assignments call it. An empty code
// is Holdfast's own backend.
type somewhere struct {
	code, location string
	env            map[string]string
}

// moving is a root module whose state moves.
type moving struct {
	t        *testing.T
	e        *runner.Executor
	main     string
	own      *stateServer
	from, to somewhere
	last     *memorySession
}

const movedMain = `resource "terraform_data" "x" { input = "made" }
output "made" { value = terraform_data.x.output }
`

func newMoving(t *testing.T, from, to somewhere) *moving {
	t.Helper()
	e, _ := newRealExecutor(t)
	return &moving{t: t, e: e, main: movedMain, own: newStateServer(t), from: from, to: to}
}

// run executes a run of the root module with its state there, or in the middle of a move.
func (m *moving) run(id string, kind holdfast.RunKind, at somewhere, change func(*protocol.Assignment)) protocol.Result {
	m.t.Helper()
	files := map[string]string{"main.tf": m.main}
	if m.from.code != "" {
		files["backend.tf"] = "terraform {\n" + m.from.code + "\n}\n"
	}
	if at.location == m.to.location {
		code := at.code
		if code == "" {
			code = `backend "http" {}`
		}
		files[rootmodule.StateOverrideFile] = "terraform {\n" + code + "\n}\n"
	}
	m.last = newMemorySession(files)
	m.last.state = m.own.URL + "/own"
	a := engineAssignment(id, kind)
	a.OwnState, a.StateLocation, a.Env = at.code == "", at.location, map[string]string{}
	for _, place := range []somewhere{m.from, m.to} {
		for name, value := range place.env {
			a.Env[name] = value
		}
	}
	if change != nil {
		change(&a)
	}
	return m.e.Execute(m.t.Context(), a, m.last)
}

// apply makes the state at its first place.
func (m *moving) apply() {
	m.t.Helper()
	planned := m.run("plan", holdfast.RunPlan, m.from, nil)
	wantStatus(m.t, planned, holdfast.RunPlanned, "", m.last)
	got := m.run("apply", holdfast.RunApply, m.from, func(a *protocol.Assignment) { a.Reviews = review("plan", planned) })
	wantStatus(m.t, got, holdfast.RunApplied, "", m.last)
}

// migrate runs the migration.
func (m *moving) migrate(id string, change func(*holdfast.StateMove)) protocol.Result {
	m.t.Helper()
	move := &holdfast.StateMove{From: m.from.location, To: m.to.location}
	if change != nil {
		change(move)
	}
	return m.run(id, holdfast.RunState, m.to, func(a *protocol.Assignment) {
		a.OwnState = m.from.code == "" || m.to.code == ""
		a.State = &holdfast.StateJob{Action: holdfast.StateMigrate, From: "apply", Move: move}
	})
}

// upToDate is a plan without changes at a place.
func (m *moving) upToDate(id string, at somewhere) {
	m.t.Helper()
	wantStatus(m.t, m.run(id, holdfast.RunPlan, at, nil), holdfast.RunNoChanges, "", m.last)
}

func httpPlace(url, name string) somewhere {
	return somewhere{
		code:     fmt.Sprintf("backend \"http\" {\n  address = \"%[1]s/%[2]s\"\n  lock_address = \"%[1]s/%[2]s\"\n  unlock_address = \"%[1]s/%[2]s\"\n  retry_max = 0\n}", url, name),
		location: "http:address=" + url + "/" + name,
	}
}

// identityOf is what a state keeps when it moves.
func identityOf(t *testing.T, state string) string {
	t.Helper()
	var s struct {
		Lineage string
		Serial  int64
	}
	if err := json.Unmarshal([]byte(state), &s); err != nil || s.Lineage == "" {
		t.Fatalf("it is not a state: %v\n%s", err, state)
	}
	return fmt.Sprintf("%s %d", s.Lineage, s.Serial)
}

// TestMigrate: a state moves between Holdfast's own backend, one of somebody else's and a bucket,
// with its lineage and serial; what is left at the former place is as it was, and a plan at the
// new one has no changes. A second migration finds the state where it is to be.
func TestMigrate(t *testing.T) {
	t.Parallel()
	realEngine(t)
	states := newStateServer(t)
	own := somewhere{location: "clusters/prod-eu"}
	foreign := func(name string) somewhere { return httpPlace(states.URL, name) }
	for name, places := range map[string]struct {
		from, to   somewhere
		was, there func(m *moving) string // the states at the two places
	}{
		"own to foreign": {
			own, foreign("a"),
			func(m *moving) string { return m.own.state("/own") }, func(*moving) string { return states.state("/a") },
		},
		"foreign to own": {
			foreign("b"), own,
			func(*moving) string { return states.state("/b") }, func(m *moving) string { return m.own.state("/own") },
		},
		"foreign to foreign": {
			foreign("c"), foreign("d"),
			func(*moving) string { return states.state("/c") }, func(*moving) string { return states.state("/d") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMoving(t, places.from, places.to)
			m.apply()
			before := places.was(m)
			wantStatus(t, m.migrate("migrate", nil), holdfast.RunApplied, "", m.last)
			if was, is := identityOf(t, before), identityOf(t, places.there(m)); was != is {
				t.Errorf("the state was %s and is %s", was, is)
			}
			if places.was(m) != before {
				t.Error("the former place has changed")
			}
			m.upToDate("after", places.to)
			there := places.there(m)
			wantStatus(t, m.migrate("again", nil), holdfast.RunApplied, "", m.last)
			if places.there(m) != there || !strings.Contains(m.last.logged(), "already") {
				t.Errorf("the second one has written again:\n%s", m.last.logged())
			}
		})
	}
}

// TestMigrateProves: nothing is moved while a plan has changes, and nothing is written over what
// is at the new place; a state that was copied by hand is only proven.
func TestMigrateProves(t *testing.T) {
	t.Parallel()
	realEngine(t)
	states := newStateServer(t)
	begin := func(t *testing.T, name string) *moving {
		t.Helper()
		m := newMoving(t, somewhere{location: "clusters/prod-eu"}, httpPlace(states.URL, name))
		m.apply()
		return m
	}
	t.Run("changes", func(t *testing.T) {
		t.Parallel()
		m := begin(t, "changes")
		m.main = strings.Replace(movedMain, "made", "other", 1)
		got := m.migrate("migrate", nil)
		wantStatus(t, got, holdfast.RunErrored, holdfast.CauseMigrationUnproven, m.last)
		if !strings.Contains(got.Failure.Summary, "Plan: 0 to add, 1 to change") || states.state("/changes") != "" {
			t.Errorf("it says %q, and there is %q", got.Failure.Summary, states.state("/changes"))
		}
	})
	t.Run("another state", func(t *testing.T) {
		t.Parallel()
		m := begin(t, "taken")
		other := newMoving(t, somewhere{location: "clusters/other"}, httpPlace(states.URL, "taken"))
		other.apply()
		wantStatus(t, other.migrate("migrate", nil), holdfast.RunApplied, "", other.last)
		before := states.state("/taken")
		got := m.migrate("migrate", nil)
		wantStatus(t, got, holdfast.RunErrored, holdfast.CauseMigrationUnproven, m.last)
		if states.state("/taken") != before {
			t.Error("it was written over")
		}
	})
	t.Run("copied", func(t *testing.T) {
		t.Parallel()
		m := begin(t, "copied")
		copied := func(move *holdfast.StateMove) { move.Copied = true }
		got := m.migrate("nothing there", copied)
		wantStatus(t, got, holdfast.RunErrored, holdfast.CauseMigrationUnproven, m.last)
		states.mu.Lock()
		states.states["/copied"] = []byte(m.own.state("/own"))
		states.mu.Unlock()
		wantStatus(t, m.migrate("migrate", copied), holdfast.RunApplied, "", m.last)
	})
}

// TestMigrateIsInterrupted has either place go away at each request of a migration: whatever was
// written, the current place is as it was, and the same migration then ends well.
func TestMigrateIsInterrupted(t *testing.T) {
	t.Parallel()
	realEngine(t)
	states := newStateServer(t)
	for _, which := range []string{"the present place", "the new place"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			backend := &leaving{store: states, left: -1}
			server := httptest.NewServer(backend)
			t.Cleanup(server.Close)
			once := func(left int) (requests int) {
				name := fmt.Sprintf("%d-%d", len(which), left+1)
				from, to := httpPlace(server.URL, name+"-from"), httpPlace(states.URL, name+"-to")
				if which == "the new place" {
					from, to = httpPlace(states.URL, name+"-from"), httpPlace(server.URL, name+"-to")
				}
				backend.stay(-1)
				m := newMoving(t, from, to)
				m.apply()
				before := states.state("/" + name + "-from")
				backend.stay(left)
				got := m.migrate("interrupted", nil)
				requests = backend.requests()
				backend.stay(-1)
				if left >= 0 && got.Status == holdfast.RunApplied {
					t.Errorf("with the backend away at request %d the migration ends well", left+1)
				}
				if states.state("/"+name+"-from") != before {
					t.Fatalf("at request %d the present place has changed", left+1)
				}
				wantStatus(t, m.migrate("again", nil), holdfast.RunApplied, "", m.last)
				if was, is := identityOf(t, before), identityOf(t, states.state("/"+name+"-to")); was != is {
					t.Errorf("at request %d the state was %s and is %s", left+1, was, is)
				}
				return requests
			}
			all := once(-1)
			if all < 5 {
				t.Fatalf("a migration makes %d requests only", all)
			}
			for left := range all {
				once(left)
			}
		})
	}
}

// TestMigrateToStorage: a state moves into each kind of storage of a runner by the block that
// Holdfast writes, and back, against a server that speaks its protocol.
func TestMigrateToStorage(t *testing.T) {
	t.Parallel()
	realEngine(t)
	stored := func(kind, bucket string) holdfast.StoredState {
		s := holdfast.StoredState{StateStorage: holdfast.StateStorage{Type: kind, Prefix: "eu"}}
		if s.Bucket = bucket; kind == "azurerm" {
			s.Bucket, s.Container, s.StorageAccount = "", bucket, "holdfasttest"
		}
		if kind == "s3" {
			s.Region = "us-east-1"
		}
		s.Key = s.KeyOf(holdfast.EnvironmentKey{Project: "shop", Name: "production"}, "prod-eu", 1)
		return s
	}
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		server := objectserver.StartS3(t)
		server.MakeBucket("states")
		thereAndBack(t, stored("s3", "states"), map[string]string{
			"AWS_ENDPOINT_URL_S3": "http://" + server.Addr(), "AWS_ENDPOINT_URL_STS": whoAmI(t), "AWS_EC2_METADATA_DISABLED": "true",
			"AWS_ACCESS_KEY_ID": server.AccessKey, "AWS_SECRET_ACCESS_KEY": server.Secret,
		}, "use_path_style = true") // an address has no names below it
		if files := server.Files("states"); len(files) != 1 || !strings.HasSuffix(files[0], "states/eu/shop/production/prod-eu.tfstate") {
			t.Errorf("in the bucket are %v", files)
		}
	})
	t.Run("azurerm", func(t *testing.T) {
		t.Parallel()
		server := objectserver.StartAzure(t)
		server.MakeBucket("states")
		thereAndBack(t, stored("azurerm", "states"), server.AsAzure())
	})
	t.Run("gcs", func(t *testing.T) {
		t.Parallel()
		server := objectserver.StartGCS(t)
		_, endpoint, _ := strings.Cut(server.MakeBucket("states"), "endpoint=")
		thereAndBack(t, stored("gcs", "states"), map[string]string{
			"GOOGLE_CREDENTIALS": server.Secret, "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT": endpoint + "/storage/v1/", "GOOGLE_STORAGE_CUSTOM_ENDPOINT": endpoint + "/storage/v1/",
		})
		if files := server.Files("states"); len(files) != 1 || !strings.Contains(files[0], "eu/shop/production/prod-eu/default.tfstate") {
			t.Errorf("in the bucket are %v", files)
		}
	})
}

// whoAmI stands in for the service that says whose the credentials of AWS are, which engines
// ask before they use a bucket.
func whoAmI(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
			<Arn>arn:aws:iam::123456789012:user/test</Arn><UserId>U</UserId><Account>123456789012</Account>
			</GetCallerIdentityResult></GetCallerIdentityResponse>`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// thereAndBack moves a state from Holdfast's own backend to a storage and back.
func thereAndBack(t *testing.T, stored holdfast.StoredState, env map[string]string, more ...string) {
	t.Helper()
	kind, arguments := stored.Backend()
	lines := more
	for name, value := range arguments {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, name+" = "+string(data))
	}
	there := somewhere{code: "backend \"" + kind + "\" {\n" + strings.Join(lines, "\n") + "\n}", location: kind + ":" + stored.Key, env: env}
	m := newMoving(t, somewhere{location: "clusters/prod-eu"}, there)
	m.apply()
	wantStatus(t, m.migrate("there", nil), holdfast.RunApplied, "", m.last)
	m.upToDate("after", there)
	back := newMoving(t, there, somewhere{location: "clusters/prod-eu"})
	wantStatus(t, back.migrate("back", nil), holdfast.RunApplied, "", back.last)
	back.upToDate("after", back.to)
	if was, is := identityOf(t, m.own.state("/own")), identityOf(t, back.own.state("/own")); was != is {
		t.Errorf("the state was %s and came back as %s", was, is)
	}
}
