package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
)

// replicas are several servers of a world, which have one PostgreSQL, one Redis and one object
// store. What balances the load is between them and everybody else: each request of a code
// host, of the API and of an agent reaches any of them.
type replicas struct {
	w        *world
	database postgresserver.Database
	redis    *redisserver.Server
	all      []*replica
}

// replica is one of the servers.
type replica struct {
	of      *replicas
	name    string
	program string // empty: binary
	dir     string // in which it works; empty: the world's
	log     *logBuffer
	cmd     *exec.Cmd // nil: it does not run
	exited  chan struct{}

	mu                 sync.Mutex
	api, hooks, socket string // empty: the balancer leaves it out
}

// newReplicas starts servers and, apart from them, an agent for plans and one for applies. Others
// that are given are started later.
func newReplicas(t *testing.T, n int, more settings, later ...*replica) *replicas {
	t.Helper()
	const token = "the administrator of all replicas"
	agentToken := func(name string, kinds ...string) any {
		return map[string]any{"name": name, "token": map[string]any{"file": name + "-token"}, "kinds": kinds}
	}
	w := newWorld(t, settings{
		"agent.off": true, "runs.lease": "4s", "encryption.keyFile": "shared.key",
		"server.api.tokens":    []any{map[string]any{"name": "admin", "role": "admin", "token": map[string]any{"file": "data/admin.token"}}},
		"server.agents.tokens": []any{agentToken("planner", "plan", "drift"), agentToken("applier", "apply", "destroy")},
	})
	w.set(more)
	w.write("data/admin.token", token, 0o600)
	w.write("planner-token", "the token of the agent that plans", 0o600)
	w.write("applier-token", "the token of the agent that applies", 0o600)
	w.write("shared.key", strings.Repeat("k", 32), 0o600)
	s := &replicas{w: w, redis: w.useRedis(), database: w.usePostgres()}
	w.useObjectStore()
	t.Cleanup(s.end)
	for i := range n {
		s.all = append(s.all, &replica{of: s, name: fmt.Sprint("replica-", i+1), log: &logBuffer{}})
	}
	for _, r := range later {
		r.of, r.log = s, &logBuffer{}
		s.all = append(s.all, r)
	}
	s.balance()
	for _, r := range s.all[:n] {
		r.launch()
	}
	w.until("the replicas are ready", func() (bool, string) {
		status, body := w.get(w.api + "/readyz")
		return status == http.StatusOK, body
	})
	s.startAgents()
	return s
}

// startAgents starts agents that speak to the balancer.
func (s *replicas) startAgents() {
	s.w.t.Helper()
	plan, apply := slotUsers(s.w.t)
	for _, agent := range []struct {
		id, dir, kinds string
		users          int
	}{{"planner", "data/agent-plan", "plan,drift", plan}, {"applier", "data/agent", "apply,destroy", apply}} {
		if err := os.MkdirAll(s.w.path(agent.dir), 0o755); err != nil {
			s.w.t.Fatal(err)
		}
		log, err := os.Create(s.w.path(agent.dir, "agent.log"))
		if err != nil {
			s.w.t.Fatal(err)
		}
		cmd := exec.Command(binary, "agent", "--server", "unix://"+s.w.path("balancer.sock"), "--id", agent.id, "--dir", s.w.path(agent.dir),
			"--token-file", s.w.path(agent.id+"-token"), "--kinds", agent.kinds, "--engine-dir", s.w.path("engine"), "--download=false",
			"--sandbox-write", s.w.path("seen"), "--slots", "2", "--slot-user", fmt.Sprint(agent.users))
		cmd.Dir, cmd.Stdout, cmd.Stderr = s.w.path(agent.dir), log, log
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.w.path(agent.dir)}
		err = errors.Join(cmd.Start(), log.Close())
		if err != nil {
			s.w.t.Fatal(err)
		}
		go func() { _ = cmd.Wait() }() // it is ended with the world
	}
}

// command is what starts a replica.
func (r *replica) command() *exec.Cmd {
	w := r.of.w
	w.t.Helper()
	config := maps.Clone(w.config)
	config["dataDir"] = r.name
	var repos []any
	for _, repo := range w.repos {
		repos = append(repos, repo.config)
	}
	config["repositories"] = repos
	text, err := yaml.Marshal(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(r.name+".yaml", string(text), 0o600)
	cmd := exec.Command(cmp.Or(r.program, binary), "serve", "--config", w.path(r.name+".yaml"))
	cmd.Dir, cmd.Env = cmp.Or(r.dir, w.dir), append(append(os.Environ(), "PATH="+serverPath()), w.env...)
	return cmd
}

// launch starts a replica and waits until it listens.
func (r *replica) launch() {
	w := r.of.w
	w.t.Helper()
	r.log.startAnew()
	out := io.MultiWriter(r.log, &named{w.log, "[" + r.name + "] "})
	cmd := r.command()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	r.cmd, r.exited = cmd, exited
	var found []string
	w.until(r.name+" listens", func() (bool, string) {
		select {
		case <-exited:
			w.t.Fatalf("%s has ended: %s", r.name, r.log.current())
		default:
		}
		found = listening.FindStringSubmatch(r.log.current())
		return found != nil, "no address in its log"
	})
	r.attach("http://"+found[2], "http://"+found[1], w.path(r.name, "run", "agent.sock"))
}

// attach has the balancer send requests to a replica, or with no addresses none.
func (r *replica) attach(api, hooks, socket string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.api, r.hooks, r.socket = api, hooks, socket
}

func (r *replica) addresses() (api, hooks, socket string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.api, r.hooks, r.socket
}

// end ends a replica by a signal, and returns its exit code.
func (r *replica) end(sig syscall.Signal) int {
	r.of.w.t.Helper()
	if r.cmd == nil {
		return 0
	}
	_ = r.cmd.Process.Signal(sig) // it may be gone already
	select {
	case <-r.exited:
	case <-time.After(patience):
		_ = r.cmd.Process.Kill()
		<-r.exited
		r.of.w.t.Errorf("%s did not end on %s", r.name, sig)
	}
	code := r.cmd.ProcessState.ExitCode()
	r.cmd = nil
	r.attach("", "", "")
	return code
}

// end ends all replicas in good order.
func (s *replicas) end() {
	for _, r := range s.all {
		if r.cmd == nil {
			continue
		}
		_ = r.cmd.Process.Signal(syscall.SIGCONT)
		if code := r.end(syscall.SIGTERM); code != 0 && !s.w.t.Failed() {
			s.w.t.Errorf("%s ended with code %d", r.name, code)
		}
	}
}

// leader is the replica that leads the fleet's repository; nil if none does.
func (s *replicas) leader() *replica {
	s.w.t.Helper()
	owner, err := s.database.Query(`SELECT owner FROM leases WHERE name = 'lead:` + s.w.fleet().name + `'
		AND expires_at > (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`)
	if err != nil {
		s.w.t.Fatal(err)
	}
	for _, r := range s.all {
		identity, err := os.ReadFile(s.w.path(r.name, "identity"))
		if err == nil && owner != "" && strings.HasPrefix(owner, strings.TrimSpace(string(identity))+"/") {
			return r
		}
	}
	return nil
}

// untilLed waits until a replica leads the fleet's repository that is not the one given.
func (s *replicas) untilLed(not *replica) *replica {
	s.w.t.Helper()
	var leads *replica
	s.w.until("another replica leads", func() (bool, string) {
		leads = s.leader()
		return leads != nil && leads != not, fmt.Sprint(leads)
	})
	return leads
}

// balance starts what stands before the replicas. It is as those are that one can have: it
// knows which of them accept connections, and nothing else.
func (s *replicas) balance() {
	w := s.w
	w.t.Helper()
	for _, front := range []struct {
		network, address string
		to               func(*replica) (network, address string)
		listens          func(net.Addr)
	}{
		{
			"tcp", "127.0.0.1:0", func(r *replica) (string, string) { api, _, _ := r.addresses(); return "tcp", hostOf(api) },
			func(at net.Addr) { w.api = "http://" + at.String() },
		},
		{
			"tcp", "127.0.0.1:0", func(r *replica) (string, string) { _, hooks, _ := r.addresses(); return "tcp", hostOf(hooks) },
			func(at net.Addr) { w.hooks = "http://" + at.String() },
		},
		{"unix", w.path("balancer.sock"), func(r *replica) (string, string) { _, _, socket := r.addresses(); return "unix", socket }, func(net.Addr) {}},
	} {
		listener, err := net.Listen(front.network, front.address)
		if err != nil {
			w.t.Fatal(err)
		}
		if front.network == "unix" {
			if err := os.Chmod(front.address, 0o666); err != nil {
				w.t.Fatal(err)
			}
		}
		front.listens(listener.Addr())
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			var errs []error
			for _, i := range rand.Perm(len(s.all)) {
				network, address := front.to(s.all[i])
				if address == "" {
					continue
				}
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if err == nil {
					return conn, nil
				}
				errs = append(errs, err)
			}
			return nil, errors.Join(append(errs, errors.New("no replica accepts connections"))...)
		}
		server := &http.Server{Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(&url.URL{Scheme: "http", Host: r.In.Host})
				r.Out.Host = r.In.Host
			},
			Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true}, // each request anywhere
			FlushInterval: -1,
			ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, err error) {
				http.Error(rw, "balancer: "+err.Error(), http.StatusBadGateway)
			},
		}}
		go func() { _ = server.Serve(listener) }()
		w.t.Cleanup(func() { _ = server.Close() })
	}
	for _, r := range w.repos {
		r.hub.SetWebhook(w.hooks+"/webhooks/github", webhookSecret)
	}
}

func hostOf(address string) string { return strings.TrimPrefix(address, "http://") }

// named puts a name before what is written.
type named struct {
	to   io.Writer
	name string
}

func (n *named) Write(p []byte) (int, error) {
	lines := strings.SplitAfter(string(p), "\n")
	for _, line := range lines {
		if line == "" {
			continue
		}
		if _, err := io.WriteString(n.to, n.name+line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
