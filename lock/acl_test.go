package lock_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/lock"
)

// A user with the rights of ACL does all that an implementation does.
func TestACLIsEnough(t *testing.T) {
	t.Parallel()
	single, nodes := redisserver.Start(t), redisserver.StartCluster(t)
	for name, tt := range map[string]struct {
		servers []*redisserver.Server
		place   lock.Server
	}{
		"single":           {[]*redisserver.Server{single}, lock.Server{URL: single.URL(), User: "one"}},
		"another database": {[]*redisserver.Server{single}, lock.Server{URL: "redis://two@" + single.Addr() + "/2"}},
		"cluster":          {nodes, lock.Server{Cluster: redisserver.Addrs(nodes...), User: "three"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.place.Password = "long-password"
			opts := lock.Options{Server: tt.place, Prefix: "fleet:", Timeout: time.Minute}
			l := openRedis(t, opts)
			for _, server := range tt.servers {
				server.Do(l.ACL() + " on >long-password")
			}
			if err := l.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := l.Guarded(t.Context()); err != nil {
				t.Fatal(err)
			}
			testOwner(t, l)
			testWake(t, openRedis(t, opts))
			opts.Prefix = "other:"
			if err := openRedis(t, opts).Check(t.Context()); !errors.Is(err, holdfast.ErrForbidden) {
				t.Errorf("Check with keys of others = %v, want ErrForbidden", err)
			}
		})
	}
}

// The rights of a user of the sentinels, as docs/install.md has them, are enough.
func TestACLOfSentinels(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rights, _ := strings.Cut(string(page), "user of the sentinels needs\n`")
	rights, _, found := strings.Cut(rights, "`")
	if !found {
		t.Fatal("docs/install.md has no rights of a user of the sentinels")
	}
	group := redisserver.StartGroup(t)
	place := of(group)
	place.Sentinel.User, place.Sentinel.Password = "watcher", "long-password"
	for _, server := range group.Sentinels {
		server.Do("ACL SETUSER watcher on >long-password " + strings.Join(strings.Fields(rights), " "))
	}
	// Strangers, whom sentinels refuse, would be in their logs, too.
	l := openRedis(t, lock.Options{Server: place, Timeout: time.Minute, MayBeOpen: true})
	if err := l.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := group.Sentinels[0].Ask("ACL LOG")
	for _, server := range group.Sentinels[1:] {
		log += server.Ask("ACL LOG")
	}
	if strings.Trim(log, "*0") != "" {
		t.Errorf("a sentinel has refused something: its log has %s entries", log)
	}
}

// Each right of ACL is needed, and Check finds the one that is missing.
func TestACLIsMinimal(t *testing.T) {
	t.Parallel()
	// What a script may not do is said without the command: the rule has them all.
	server := redisserver.Start(t)
	place := lock.Server{URL: server.URL(), User: "careful", Password: "long-password"}
	rule := strings.Fields(openRedis(t, lock.Options{Server: place}).ACL())
	dropped := 0
	for i, right := range rule {
		if !strings.ContainsAny(right[:1], "+~&") {
			continue
		}
		dropped++
		server.Do("ACL SETUSER careful reset")
		server.Do(strings.Join(slices.Delete(slices.Clone(rule), i, i+1), " ") + " on >long-password")
		server.Do("SCRIPT FLUSH")
		l := openRedis(t, lock.Options{Server: place, Timeout: time.Minute})
		err := l.Check(t.Context())
		if !errors.Is(err, holdfast.ErrForbidden) {
			t.Errorf("Check without %s = %v, want ErrForbidden", right, err)
		} else if command, is := strings.CutPrefix(right, "+"); is && !strings.Contains(err.Error(), "script") && !strings.Contains(err.Error(), "'"+command+"'") {
			t.Errorf("%q does not name %s", err, command)
		}
	}
	if dropped != 13 {
		t.Errorf("%d rights were dropped, want 13", dropped)
	}
}

// The page says the rights that ACL has.
func TestACLIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := func(place lock.Server) string {
		place.User = "holdfast"
		return openRedis(t, lock.Options{Server: place}).ACL()
	}
	single := rule(lock.Server{URL: "redis://x"})
	for _, words := range []string{
		"\n" + single + "\n",
		"A Cluster needs `" + strings.TrimPrefix(rule(lock.Server{Cluster: []string{"x:1"}}), single+" ") + "`",
		"other than 0 `" + strings.TrimPrefix(rule(lock.Server{Sentinel: lock.Sentinel{Master: "m", Addresses: []string{"x:1"}}, Database: 1}), single+" ") + "`",
	} {
		if !strings.Contains(string(page), words) {
			t.Errorf("docs/install.md lacks %q", words)
		}
	}
}
