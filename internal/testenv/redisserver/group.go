package redisserver

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeport"
)

// MasterName is what sentinels call the master.
const MasterName = "holdfast-test"

// Group is a master and a replica with one password, and three sentinels with another.
type Group struct {
	Master, Replica *Server
	Sentinels       []*Server
}

// StartGroup starts a Group and waits until every sentinel knows the others and the
// replica: from then on the replica is promoted once the master is gone for two seconds.
func StartGroup(t testing.TB) *Group {
	t.Helper()
	password := rand.Text()
	g := &Group{Master: start(t, password, func(string, int) []string {
		return []string{"--masterauth", password, "--repl-diskless-sync-delay", "0"}
	})}
	g.Replica = start(t, password, func(string, int) []string {
		return []string{"--masterauth", password, "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", strconv.Itoa(g.Master.port)}
	})
	g.Replica.Await("INFO replication", "master_link_status:up")
	word := rand.Text()
	for range 3 {
		g.Sentinels = append(g.Sentinels, start(t, word, func(dir string, port int) []string {
			writeSentinel(t, dir, port, word, g.Master)
			return []string{"--sentinel"}
		}))
	}
	for _, s := range g.Sentinels {
		s.Await("INFO sentinel", "slaves=1,sentinels=3")
	}
	return g
}

// writeSentinel writes the file of a sentinel, which keeps there what it learns.
func writeSentinel(t testing.TB, dir string, port int, word string, master *Server) {
	t.Helper()
	lines := []string{
		fmt.Sprintf("port %d", port), "bind 127.0.0.1", "dir " + dir, "requirepass " + word, "sentinel sentinel-pass " + word,
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", MasterName, master.port),
		fmt.Sprintf("sentinel auth-pass %s %s", MasterName, master.password),
		fmt.Sprintf("sentinel down-after-milliseconds %s 2000", MasterName),
		fmt.Sprintf("sentinel failover-timeout %s 4000", MasterName),
	}
	if err := os.WriteFile(filepath.Join(dir, "sentinel.conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Addrs are host:port of some servers.
func Addrs(servers ...*Server) []string {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// StartCluster starts a Redis Cluster of three masters with one password, and waits
// until each serves.
func StartCluster(t testing.TB) []*Server {
	t.Helper()
	const slots = 16384
	password := rand.Text()
	var (
		nodes []*Server
		buses []int
	)
	for i := range 3 {
		bus := 0
		s := start(t, password, func(string, int) []string {
			bus = freeport.Of(t)
			return []string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--masterauth", password}
		})
		s.Do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", slots*i/3, slots*(i+1)/3-1))
		nodes, buses = append(nodes, s), append(buses, bus)
	}
	for i, s := range nodes[1:] {
		nodes[0].Do(fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %d", s.port, buses[i+1]))
	}
	for _, s := range nodes {
		s.Await("CLUSTER INFO", "cluster_state:ok")
		s.Await("CLUSTER INFO", "cluster_known_nodes:3")
	}
	return nodes
}
