package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
)

// Redis says where Redis is: by exactly one of URL, Sentinel and Cluster.
type Redis struct {
	URL      string        `yaml:"url" doc:"A single Redis: redis://host:port/db, rediss:// for TLS, or unix:///path/to/socket. Either this, sentinel or cluster. A Redis, or a sentinel, that accepts clients without a password is refused unless isolation is none, because code that engines execute could connect to it."`
	Sentinel RedisSentinel `yaml:"sentinel" doc:"A master with replicas, found by Redis Sentinel, and followed when a replica is promoted. See [install](install.md#redis)."`
	Cluster  RedisCluster  `yaml:"cluster" doc:"A Redis Cluster. See [install](install.md#redis)."`
	User     string        `yaml:"user" doc:"The ACL user. Left out: the user in the URL, otherwise Redis's default user. [Install](install.md#redis) lists the rights that it needs."`
	Password Secret        `yaml:"password" doc:"The password of that user. Left out: none, which requires isolation: none."`
	Database int           `yaml:"database" default:"0" doc:"With sentinel: the number of the database. A URL has it in its path, a cluster has only 0."`
	TLS      RedisTLS      `yaml:"tls" doc:"TLS for every connection, sentinels included."`
	Prefix   string        `yaml:"prefix" default:"holdfast:" doc:"Prefix of every key, so that several Holdfast servers can share a Redis."`
}

// RedisSentinel is the sentinels of a Redis.
type RedisSentinel struct {
	Master    string   `yaml:"master" doc:"The master's name, as in \"sentinel monitor NAME ...\"."`
	Addresses []string `yaml:"addresses" doc:"host:port of the sentinels; one that answers is enough. Others are discovered from it."`
	User      string   `yaml:"user" doc:"The ACL user of the sentinels. Left out: their default user."`
	Password  Secret   `yaml:"password" doc:"The password of the sentinels, which differs from that of Redis. Left out: none, which requires isolation: none."`
}

// RedisCluster is nodes of a Redis Cluster.
type RedisCluster struct {
	Addresses []string `yaml:"addresses" doc:"host:port of some nodes. The others are discovered from them, so nodes must announce addresses that the server can reach."`
}

// RedisTLS is how Redis is recognized, and how it recognizes us.
type RedisTLS struct {
	Enabled    bool   `yaml:"enabled" doc:"With sentinel and cluster: true to use TLS. In a URL, use rediss://."`
	CAFile     string `yaml:"caFile" doc:"PEM: authorities to trust for Redis's certificate. Left out: the system's."`
	CertFile   string `yaml:"certFile" doc:"PEM: the client certificate, if Redis requires one. Read again for each connection."`
	KeyFile    string `yaml:"keyFile" doc:"PEM: its key."`
	ServerName string `yaml:"serverName" doc:"The name in Redis's certificate. Left out: the host of each address."`
}

// checkRedis finds contradictions about where Redis is.
func (d contradictions) checkRedis(lock Lock) {
	const at = "lock.redis"
	r := lock.Redis
	var places []string
	for _, place := range []struct {
		key string
		set bool
	}{
		{at + ".url", r.URL != ""},
		{at + ".sentinel", r.Sentinel.Master != "" || len(r.Sentinel.Addresses) > 0},
		{at + ".cluster", len(r.Cluster.Addresses) > 0},
	} {
		if place.set {
			places = append(places, place.key)
		}
	}
	switch {
	case lock.Type == "redis" && len(places) == 0:
		d.at("lock.type", "redis needs lock.redis.url, sentinel or cluster", "such as url: redis://127.0.0.1:6379/0")
	case lock.Type == "memory" && len(places) > 0:
		d.at(places[0], "is set, but lock.type is memory", "set lock.type to redis, or remove it")
	case len(places) > 1:
		d.at(places[1], "is set, and so is "+places[0], "keep one: url for a single Redis")
	}
	d.secret(at+".password", r.Password)
	d.secret(at+".sentinel.password", r.Sentinel.Password)
	if slices.Contains(places, at+".sentinel") {
		d.required(at+".sentinel.master", r.Sentinel.Master)
		if len(r.Sentinel.Addresses) == 0 {
			d.at(at+".sentinel.addresses", "is missing", "such as [sentinel-1:26379, sentinel-2:26379]")
		}
	}
	d.hostPorts(at+".sentinel.addresses", r.Sentinel.Addresses)
	d.hostPorts(at+".cluster.addresses", r.Cluster.Addresses)
	if r.Database < 0 || r.Database != 0 && r.Sentinel.Master == "" {
		d.at(at+".database", "is only for sentinel, and at least 0", "a URL has the number in its path, a cluster has only 0")
	}
	d.checkRedisURL(at+".url", r)
	d.checkRedisTLS(at+".tls", r)
}

func (d *decoder) hostPorts(path string, addresses []string) {
	for i, address := range addresses {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			d.at(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%q is not a host:port", address), "such as redis-1.example.com:6379")
		}
	}
}

func (d contradictions) checkRedisURL(path string, r Redis) {
	if r.URL == "" {
		return
	}
	u, err := url.Parse(r.URL)
	if err != nil || !slices.Contains([]string{"redis", "rediss", "unix"}, u.Scheme) {
		// Not shown: it may have a password in it.
		d.at(path, "is not a redis://, rediss:// or unix:// URL", "such as redis://127.0.0.1:6379/0")
		return
	}
	if _, has := u.User.Password(); has {
		d.at(path, "carries a password", "put it into a file and name the file in lock.redis.password")
	}
	if u.User.Username() != "" && r.User != "" {
		d.at(path, "names a user, and so does lock.redis.user", "keep one")
	}
}

func (d contradictions) checkRedisTLS(path string, r Redis) {
	t := r.TLS
	d.tls(path, TLS{CertFile: t.CertFile, KeyFile: t.KeyFile})
	u, err := url.Parse(r.URL)
	secure := t.Enabled || r.URL != "" && (err != nil || u.Scheme == "rediss")
	switch {
	case r.URL != "" && t.Enabled && err == nil && u.Scheme != "rediss":
		d.at(path+".enabled", "is true, but lock.redis.url is not a rediss:// URL", "write rediss:// for TLS")
	case t != (RedisTLS{}) && !secure:
		d.at(path, "is set, but TLS is not used", "set enabled: true; with a url, write rediss://")
	}
}
