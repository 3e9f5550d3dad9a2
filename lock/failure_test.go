package lock_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/lock"
)

// What is wrong with the set-up is said as what it is, with the address, and with
// nothing secret.
func TestWrongPlaces(t *testing.T) {
	t.Parallel()
	group, nodes, single := redisserver.StartGroup(t), redisserver.StartCluster(t), redisserver.Start(t)
	hanging, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close()
	sentinel := func(change func(*lock.Sentinel)) lock.Server {
		place := of(group)
		change(&place.Sentinel)
		return place
	}
	const wrong = "s3cret-and-wrong"
	for name, tt := range map[string]struct {
		place lock.Server
		want  error
		words string
	}{
		"wrong password":      {lock.Server{URL: single.URL(), Password: wrong}, holdfast.ErrUnauthorized, single.Addr()},
		"unknown user":        {lock.Server{URL: single.URL(), User: "nobody", Password: wrong}, holdfast.ErrUnauthorized, "WRONGPASS"},
		"a cluster's node":    {lock.Server{URL: nodes[0].URL(), Password: nodes[0].Password()}, lock.ErrClusterNode, nodes[0].Addr()},
		"not a cluster":       {lock.Server{Cluster: []string{single.Addr()}, Password: single.Password()}, lock.ErrNoCluster, single.Addr()},
		"wrong in a cluster":  {lock.Server{Cluster: redisserver.Addrs(nodes...), Password: wrong}, holdfast.ErrUnauthorized, nodes[0].Addr()},
		"a replica":           {at(group.Replica), lock.ErrReplica, group.Replica.Addr()},
		"a sentinel":          {at(group.Sentinels[0]), lock.ErrUnknownCommand, group.Sentinels[0].Addr()},
		"an unknown master":   {sentinel(func(s *lock.Sentinel) { s.Master = "primary" }), lock.ErrUnknownMaster, `"primary"`},
		"sentinel's password": {sentinel(func(s *lock.Sentinel) { s.Password = wrong }), holdfast.ErrUnauthorized, group.Sentinels[0].Addr()},
		"not a sentinel": {sentinel(func(s *lock.Sentinel) {
			s.Addresses, s.Password = []string{single.Addr()}, single.Password()
		}), lock.ErrUnknownCommand, single.Addr()},
		"no sentinel there": {sentinel(func(s *lock.Sentinel) { s.Addresses = []string{"127.0.0.1:1"} }), holdfast.ErrUnavailable, "127.0.0.1:1: connect: connection refused"},
		"nothing there":     {lock.Server{URL: "redis://127.0.0.1:1"}, holdfast.ErrUnavailable, "127.0.0.1:1: connect: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			l := openRedis(t, lock.Options{Server: tt.place, Timeout: time.Minute})
			checkFailure(t, l, tt.want, tt.words, wrong)
		})
	}
	l := openRedis(t, lock.Options{Server: lock.Server{URL: "redis://" + hanging.Addr().String()}, Timeout: 20 * time.Millisecond})
	checkFailure(t, l, holdfast.ErrUnavailable, "no answer in time", wrong)
}

func checkFailure(t *testing.T, l *lock.Redis, want error, words, secret string) {
	t.Helper()
	err := l.Check(t.Context())
	t.Log(err)
	if !errors.Is(err, want) {
		t.Errorf("Check = %v, want %v", err, want)
		return
	}
	if text := err.Error(); !strings.Contains(text, words) || strings.Contains(text, secret) || strings.Contains(text, "\n") {
		t.Errorf("Check = %q, want %q and no secret in one line", text, words)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certs, others := redisserver.NewCertificates(t), redisserver.NewCertificates(t)
	server, addr := redisserver.StartTLS(t, certs)
	pair, err := tls.LoadX509KeyPair(certs.ClientCert, certs.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	conf := func(ca string, name string, pairs ...tls.Certificate) *tls.Config {
		pem, err := os.ReadFile(ca)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		return &tls.Config{RootCAs: pool, Certificates: pairs, ServerName: name, MinVersion: tls.VersionTLS12}
	}
	for name, tt := range map[string]struct {
		url   string
		tls   *tls.Config
		words string // empty: it works
	}{
		"by address":        {"rediss://" + addr, conf(certs.CA, "", pair), ""},
		"by a name":         {"rediss://" + addr, conf(certs.CA, "localhost", pair), ""},
		"another name":      {"rediss://" + addr, conf(certs.CA, "redis.example.com", pair), "not redis.example.com"},
		"unknown authority": {"rediss://" + addr, conf(others.CA, "", pair), "unknown authority"},
		"the system's":      {"rediss://" + addr, nil, "unknown authority"},
		"no certificate":    {"rediss://" + addr, conf(certs.CA, ""), addr},
		"a plain port":      {"rediss://" + server.Addr(), conf(certs.CA, "", pair), "TLS handshake with " + server.Addr()},
		"plain to TLS":      {"redis://" + addr, nil, addr},
	} {
		t.Run(name, func(t *testing.T) {
			patience := time.Minute
			if strings.Contains(tt.words, server.Addr()) {
				patience = 50 * time.Millisecond // Redis waits for the end of what it takes for a line
			}
			l := openRedis(t, lock.Options{
				Server: lock.Server{URL: tt.url, TLS: tt.tls, Password: server.Password()}, Timeout: patience,
			})
			if tt.words == "" {
				mustAcquire(t, l, name, "run-1/1", time.Minute)
				testWake(t, l)
				return
			}
			checkFailure(t, l, holdfast.ErrUnavailable, tt.words, server.Password())
		})
	}
}
