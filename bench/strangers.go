package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// strangerCount is how many connections strangers hold at once, if this process
// may have as many files.
const strangerCount = 10_000

// strangers measures what a server's public listener holds for connections of
// strangers, beyond what it holds without, and how long genuine deliveries take
// meanwhile. All of it is on loopback.
func (b *bench) strangers(s *stage) {
	count := strangerCount
	var files syscall.Rlimit
	s.check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	if limit := int(files.Cur) - 500; limit < count {
		count = limit
		fmt.Fprintf(b.log, "strangers: %d only, for want of file descriptors\n", count)
	}
	w := s.newWorld("")
	w.start()
	body := w.pushBody()
	address, err := url.Parse(w.hook)
	s.check(err)
	forged := "POST " + address.Path + " HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: push\r\nContent-Type: application/json\r\n"

	for _, kind := range []struct{ name, says string }{
		{"silent strangers", ""},
		{"strangers with slow headers", forged + "X-Slow: " + strings.Repeat("x", 8<<10)},
		{"strangers with slow bodies", forged + "X-Hub-Signature-256: sha256=" + strings.Repeat("0", 64) +
			"\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 32<<10)},
	} {
		w.stop()
		w.start() // each begins with the same memory
		address, err = url.Parse(w.hook)
		s.check(err)
		time.Sleep(settleFor / 5)
		before, _ := s.resident(w.cmd.Process.Pid)
		release := s.crowd(address.Host, kind.says, count)
		latency := s.genuine(w.hook, body)
		after, _ := s.resident(w.cmd.Process.Pid)
		release()
		fmt.Fprintf(b.log, "%d %s: %.0f MiB more, a delivery takes %s\n", count, kind.name, after-before, latency)
		s.add(
			figure{Name: kind.name + ", memory", N: count, Value: after - before, Unit: "MiB"},
			figure{Name: kind.name + ", a delivery meanwhile", N: count, Value: float64(latency.Microseconds()) / 1000, Unit: "ms"})
	}
}

// crowd opens connections that say something and no more, until release.
func (s *stage) crowd(address, says string, count int) (release func()) {
	conns := make([]net.Conn, count)
	var failed atomic.Int64
	var dialers sync.WaitGroup
	for first := range connections {
		dialers.Go(func() {
			for i := first; i < count; i += connections {
				conn, err := net.DialTimeout("tcp", address, patience)
				if err != nil {
					failed.Add(1)
					continue
				}
				_ = conn.SetWriteDeadline(time.Now().Add(patience))
				_, _ = conn.Write([]byte(says)) // it may be closed already: to make room
				conns[i] = conn
			}
		})
	}
	dialers.Wait()
	if n := failed.Load(); n > 0 {
		s.Fatalf("%d of %d connections of strangers were not taken", n, count)
	}
	return func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}

// genuine delivers a few times, each on its own connection, and returns how long the
// slowest took.
func (s *stage) genuine(hook string, body []byte) (slowest time.Duration) {
	headers := githubserver.Headers(githubserver.Delivery{Event: "push", Body: body}, webhookSecret)
	for i := range 20 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
		took, err := deliver(client, hook, body, headers, fmt.Sprintf("%s-%d", holdfast.NewID("genuine", time.Now()), i))
		s.check(err)
		slowest = max(slowest, took)
	}
	return slowest
}
