//go:build !race

package server_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStrangersAreCheap: connections that say nothing, begin a header or send a
// body slowly cost little, and deliveries are answered meanwhile.
func TestStrangersAreCheap(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	strangers := min(3000, int(files.Cur)/4) // both ends are ours
	at := serving(t, nil)
	deliver(t, at.Public) // the listeners are there
	quiet := runtime.NumGoroutine()
	for _, kind := range []struct{ name, says string }{
		{"slow bodies", "POST /webhooks/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 8<<10)},
		{"slow headers", "POST /webhooks/x HTTP/1.1\r\nX-Long: " + strings.Repeat("x", 8<<10)},
		{"first letters", "P"},
		{"silent", ""},
	} {
		before := inUse()
		conns := make([]net.Conn, strangers)
		for i := range conns {
			conns[i] = connectTo(t, at.Public, "")
			_, _ = io.WriteString(conns[i], kind.says) // it may be closed already
		}
		deliver(t, at.Public)
		used := inUse() - before
		// Those that are served take 50 KB each, and there is a bound of them: of
		// 10,000 connections this is 150 MB.
		if limit := 512*50_000 + int64(strangers)*12_400; used > limit {
			t.Errorf("%s: %d connections take %d bytes, want at most %d", kind.name, strangers, used, limit)
		}
		t.Logf("%s: %d bytes for each of %d", kind.name, used/int64(strangers), strangers)
		for _, conn := range conns {
			conn.Close()
		}
		for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > quiet+10 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) // the next kind is not to be measured with this one
		}
	}
}

// inUse is what the heap and all stacks hold, after a collection.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
