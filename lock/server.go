package lock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server says where Redis is and how to reach it: one of URL, Sentinel and Cluster.
type Server struct {
	// URL is that of a single Redis: redis://host:port/db, rediss:// for TLS, or
	// unix:///path. A user may be in it; a password belongs in Password, and is an
	// error here.
	URL string

	// Sentinel finds the master of a Redis with replicas.
	Sentinel Sentinel

	// Cluster has the addresses, host:port, of nodes of a Redis Cluster. The others are
	// learned from them.
	Cluster []string

	User     string // empty: the one in the URL, otherwise Redis's default user
	Password string
	Database int // of a Redis behind Sentinel; a URL has its own, a Cluster has none

	// TLS is used for every connection, sentinels included. An empty ServerName stands
	// for the host of each address. Nil means none, and with a rediss:// URL the
	// system's roots. It is an error with redis://.
	TLS *tls.Config
}

// Sentinel is the sentinels of a Redis.
type Sentinel struct {
	Master    string   // its name
	Addresses []string // host:port
	User      string   // of the sentinels; empty: their default user
	Password  string   // empty: none
}

// place is where Redis is, as the client needs it.
type place struct {
	conf    redis.UniversalOptions
	network string      // tcp or unix
	tls     *tls.Config // nil: none
	name    string      // in errors
}

func (s Server) place() (place, error) {
	forms := 0
	for _, set := range []bool{s.URL != "", s.Sentinel.Master != "" || len(s.Sentinel.Addresses) > 0, len(s.Cluster) > 0} {
		if set {
			forms++
		}
	}
	switch {
	case forms != 1:
		return place{}, errors.New("redis: needs a URL, sentinels or nodes of a cluster: exactly one of them")
	case s.URL != "":
		return s.single()
	}
	at := place{network: "tcp", tls: s.TLS, conf: redis.UniversalOptions{
		Addrs: s.Cluster, Username: s.User, Password: s.Password, DB: s.Database,
	}}
	if len(s.Cluster) > 0 {
		if s.Database != 0 {
			return place{}, fmt.Errorf("redis: database %d: a cluster has only database 0", s.Database)
		}
		at.conf.IsClusterMode = true
		at.name = "redis cluster at " + strings.Join(s.Cluster, ", ")
		return at, nil
	}
	if s.Sentinel.Master == "" || len(s.Sentinel.Addresses) == 0 {
		return place{}, errors.New("redis: sentinel needs the name of a master and addresses")
	}
	at.conf.MasterName, at.conf.Addrs = s.Sentinel.Master, s.Sentinel.Addresses
	at.conf.SentinelUsername, at.conf.SentinelPassword = s.Sentinel.User, s.Sentinel.Password
	at.name = fmt.Sprintf("redis master %q of sentinels at %s", s.Sentinel.Master, strings.Join(s.Sentinel.Addresses, ", "))
	return at, nil
}

// single is the place that a URL names.
func (s Server) single() (place, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return place{}, errors.New("redis: URL cannot be parsed") // the cause would print it
	}
	if _, has := u.User.Password(); has {
		return place{}, errors.New("redis: password in the URL: keep it in a file or the environment")
	}
	if s.TLS != nil && u.Scheme != "rediss" {
		return place{}, fmt.Errorf("redis: TLS settings for a %s:// URL", u.Scheme)
	}
	conf, err := redis.ParseURL(s.URL)
	if err != nil {
		return place{}, err
	}
	if conf.Username != "" && s.User != "" {
		return place{}, errors.New("redis: a user in the URL and another one next to it")
	}
	at := place{network: conf.Network, tls: conf.TLSConfig, name: "redis at " + conf.Addr, conf: redis.UniversalOptions{
		Addrs: []string{conf.Addr}, Username: conf.Username + s.User, Password: s.Password, DB: conf.DB,
	}}
	if s.TLS != nil {
		at.tls = s.TLS
	}
	return at, nil
}

// bounded sets how long the client waits and how often it tries.
func (p *place) bounded(timeout time.Duration) {
	conf := &p.conf
	conf.DialTimeout = callTimeouts * timeout // asking sentinels, looking for strangers, connecting
	conf.ReadTimeout, conf.WriteTimeout, conf.PoolTimeout = timeout, timeout, timeout
	conf.ContextTimeoutEnabled = true
	conf.DialerRetries = 1
	conf.DisableIdentity = true // a user may lack the right to CLIENT
	// Once more, for a connection that died in the pool. Every command may be
	// sent twice: an owner that has the lock already gets it again.
	conf.MaxRetries = 1
	if conf.IsClusterMode {
		conf.MaxRetries = 0 // the client follows redirections, and repeats by their number
	}
}

// dial connects to one node, or to one sentinel.
func (p *place) dial(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, p.network, addr)
	if err != nil || p.tls == nil {
		return conn, err
	}
	conf := p.tls.Clone()
	if conf.ServerName == "" {
		conf.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secured := tls.Client(conn, conf)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", addr, err)
	}
	return secured, nil
}
