package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/objectserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

const (
	replicaCount = 3
	claimers     = 200 // agents, which execute nothing
	// The first runs are not counted: each session of the database reads its catalogue and plans
	// each statement first.
	warmingRuns = 400
	claimedRuns = 1200
	// floorClients are the connections of the floor: what the replicas have together.
	floorClients = 24
)

// replicas measures three servers with one PostgreSQL, one Redis and one object store: how many
// runs a second agents claim and end, against the database alone, and how long a repository has
// no leader after that was killed, or asked to stop.
func (b *bench) replicas(s *stage) {
	c := s.newCrew()
	for _, r := range c.all {
		r.start()
	}
	s.within(fleetWait, "all runs are queued", func() bool {
		time.Sleep(100 * time.Millisecond) // each look is a process
		return c.number(`SELECT count(*) FROM runs WHERE claim_at IS NOT NULL`) >= warmingRuns+claimedRuns
	})
	took := c.claimAll()
	rate, floor := claimedRuns/took.Seconds(), c.floor()
	fmt.Fprintf(b.log, "%d runs claimed and ended by %d agents in %s: %.0f a second, floor %.0f\n", claimedRuns, claimers, took, rate, floor)
	s.add(figure{Name: "claims and ends of runs on PostgreSQL, 3 replicas", N: claimers, Value: rate, Unit: "1/s"}.against(floor))
	for _, end := range []struct {
		name string
		by   syscall.Signal
	}{{"another replica leads after SIGTERM", syscall.SIGTERM}, {"another replica leads after kill -9", syscall.SIGKILL}} {
		var gaps []time.Duration
		for range s.rounds() {
			gaps = append(gaps, c.failover(end.by))
			fmt.Fprintf(b.log, "%s: %s\n", end.name, ms(gaps[len(gaps)-1]))
		}
		s.add(figure{Name: end.name, N: replicaCount, Value: median(gaps).Seconds(), Unit: "s"})
	}
	for _, r := range c.all {
		r.stop()
	}
}

// crew are the replicas.
type crew struct {
	*stage
	database postgresserver.Database
	all      []*world
}

func (s *stage) newCrew() *crew {
	c := &crew{stage: s, database: postgresserver.StartGuarded(s, true).New(s, "")}
	redis, objects := redisserver.Start(s), objectserver.StartS3(s)
	password, err := c.database.Password()
	s.check(err)
	bucket := objects.MakeBucket("holdfast")
	secrets := map[string]string{
		"postgres": password, "redis": redis.Password(), "objects": objects.Secret, "agents": "the token of all agents", "key": strings.Repeat("k", 32),
	}
	for name, value := range secrets {
		s.write(filepath.Join(s.dir, name), value, 0o600)
	}
	first := s.newWorldWith(fmt.Sprintf(`
encryption: {keyFile: %[1]s/key}
datastore:
  url: %[2]q
  password: {file: %[1]s/postgres}
  blobs: {url: %[3]q, accessKey: %[4]q, secret: {file: %[1]s/objects}}
lock: {type: redis, redis: {url: %[5]q, password: {file: %[1]s/redis}}}
agent: {off: true}
engines: {download: false}
runs: {max: 1000}
isolation: none
`, s.dir, c.database.URL(), bucket, objects.AccessKey, redis.URL()), "clusters/**/*.yaml", "")
	config, err := os.ReadFile(first.path("holdfast.yaml"))
	s.check(err)
	agents := fmt.Sprintf("  agents: {address: \"127.0.0.1:0\", tokens: [{name: bench, kinds: [plan, drift, apply, destroy], token: {file: %s/agents}}]}\n", s.dir)
	config = bytes.Replace(config, []byte("  grace: 1s\n"), []byte("  grace: 1s\n"+agents), 1)
	for i := range replicaCount {
		r := &world{stage: s, dir: filepath.Join(first.dir, "replica-"+strconv.Itoa(i)), hosted: first.hosted, host: first.host, log: &logBuffer{}}
		for _, name := range []string{"token", "secret"} {
			text, err := os.ReadFile(first.path(name))
			s.check(err)
			s.write(r.path(name), string(text), 0o600)
		}
		s.write(r.path("holdfast.yaml"), string(config), 0o600)
		c.all = append(c.all, r)
	}
	first.git.Commit("main", "A fleet", fleetFiles(fleet(warmingRuns+claimedRuns)))
	return c
}

var agentsListen = regexp.MustCompile(`msg="server is listening".* agents=(\S+)`)

// claimAll has agents claim all runs, and end them at once, and returns how long that took for
// those that count.
func (c *crew) claimAll() time.Duration {
	var addresses []string
	for _, r := range c.all {
		addresses = append(addresses, "http://"+agentsListen.FindStringSubmatch(r.log.String())[1])
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: claimers}, Timeout: patience}
	defer client.CloseIdleConnections()
	var ended atomic.Int64
	var agents sync.WaitGroup
	failed := make(chan error, claimers)
	var began atomic.Int64 // when the runs that count began, in nanoseconds
	for i := range claimers {
		agents.Go(func() {
			a := claimer{client: client, server: addresses[i%len(addresses)], id: fmt.Sprint("bench/", i)}
			for ended.Load() < warmingRuns+claimedRuns && c.ctx.Err() == nil {
				some, err := a.step()
				if err != nil {
					failed <- fmt.Errorf("agent %s: %w", a.id, err)
					return
				}
				if some && ended.Add(1) == warmingRuns {
					began.Store(time.Now().UnixNano())
				}
			}
		})
	}
	var took time.Duration
	c.within(fleetWait, "all runs are ended", func() bool {
		took = time.Since(time.Unix(0, began.Load()))
		return ended.Load() >= warmingRuns+claimedRuns || len(failed) > 0
	})
	agents.Wait()
	select {
	case err := <-failed:
		c.Fatal(err)
	default:
	}
	return took
}

// claimer is an agent that executes nothing.
type claimer struct {
	client     *http.Client
	server, id string
}

// step claims a run and ends it; false if there was none.
func (a claimer) step() (bool, error) {
	var run protocol.Assignment
	claim := protocol.ClaimRequest{
		Agent: a.id, Process: "process of " + a.id, Folder: "folder of " + a.id, Protocol: protocol.Version, Isolation: protocol.IsolationNone,
		Wait: time.Second,
	}
	status, err := a.post("/agent/v1/claims", "the token of all agents", claim, &run)
	if err != nil || status == http.StatusNoContent {
		return false, err
	}
	_, err = a.post(fmt.Sprintf("/agent/v1/runs/%s/attempts/%d/result", run.Run, run.Attempt), run.Token, protocol.Result{
		Fence: run.Fence, Status: holdfast.RunErrored, Failure: &holdfast.Failure{Step: "plan", Summary: "nothing was executed"},
	}, nil)
	return err == nil, err
}

func (a claimer) post(path, token string, in, out any) (status int, err error) {
	text, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequest(http.MethodPost, a.server+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return 0, err
	case res.StatusCode/100 != 2:
		return 0, fmt.Errorf("%s: %s: %s", path, res.Status, answer)
	case out != nil && len(answer) > 0:
		err = json.Unmarshal(answer, out)
	}
	return res.StatusCode, err
}

// floor is how often in a second the database alone does what a claim and an end cannot do
// without: two transactions that each write a row of the same size.
func (c *crew) floor() float64 {
	c.query(`CREATE TABLE floor AS SELECT row_number() OVER () AS n, doc FROM runs`, `ALTER TABLE floor ADD PRIMARY KEY (n)`,
		`ALTER TABLE floor OWNER TO `+postgresserver.Role)
	script := filepath.Join(c.TempDir(), "floor.sql")
	c.write(script, "\\set n random(1, "+strconv.Itoa(claimedRuns)+")\n"+strings.Repeat("UPDATE floor SET doc = doc WHERE n = :n;\n", 2), 0o644)
	cmd := c.command(pgbench(), "-n", "-f", script, "-c", strconv.Itoa(floorClients), "-j", "2", "-T", "5", "-d", c.database.URL())
	cmd.Env = append(os.Environ(), "PGPASSWORD="+c.password())
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("pgbench: %v\n%s", err, out)
	}
	found := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(out)
	if found == nil {
		c.Fatalf("pgbench does not say how many transactions it made:\n%s", out)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	c.check(err)
	c.query(`DROP TABLE floor`)
	return rate
}

// pgbench is PostgreSQL's own program.
func pgbench() string {
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		return "pgbench"
	}
	return found[len(found)-1]
}

func (c *crew) password() string {
	password, err := c.database.Password()
	c.check(err)
	return password
}

func (c *crew) query(queries ...string) (text string) {
	for _, query := range queries {
		var err error
		text, err = c.database.Query(query)
		c.check(err)
	}
	return text
}

func (c *crew) number(query string) int {
	n, err := strconv.Atoi(c.query(query))
	c.check(err)
	return n
}

// leader is the replica that leads the repository; nil if none does.
func (c *crew) leader() *world {
	owner := c.query(`SELECT owner FROM leases WHERE name = 'lead:` + fleetRepo + `'
		AND expires_at > (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`)
	for _, r := range c.all {
		identity, err := os.ReadFile(r.path("data", "identity"))
		if err == nil && owner != "" && strings.HasPrefix(owner, strings.TrimSpace(string(identity))+"/") {
			return r
		}
	}
	return nil
}

// failover ends the replica that leads by a signal, returns how long it took until another one
// leads, and starts it again.
func (c *crew) failover(by syscall.Signal) time.Duration {
	var leads *world
	c.until("a replica leads", func() bool { leads = c.leader(); return leads != nil })
	began := time.Now()
	c.check(leads.cmd.Process.Signal(by))
	c.until("another replica leads", func() bool {
		time.Sleep(20 * time.Millisecond) // each look is a process
		now := c.leader()
		return now != nil && now != leads
	})
	took := time.Since(began)
	if err := leads.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		c.Fatal(err)
	}
	leads.cmd = nil
	leads.start()
	return took
}
