// Command balancer passes each TCP connection on to one of several servers: the load balancer
// of a demo or a test. It asks them in turn, and leaves out those that do not accept.
//
// Usage: balancer ADDRESS BACKEND [BACKEND]
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "balancer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: balancer ADDRESS BACKEND [BACKEND]")
	}
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	b := &balancer{backends: args[1:]}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go b.serve(conn)
	}
}

type balancer struct {
	backends []string
	turn     atomic.Uint32
}

// patience is how long a backend may take to accept: one on this machine does at once.
const patience = time.Second

func (b *balancer) serve(conn net.Conn) {
	defer conn.Close()
	first := int(b.turn.Add(1))
	for i := range b.backends {
		backend, err := net.DialTimeout("tcp", b.backends[(first+i)%len(b.backends)], patience)
		if err != nil {
			continue
		}
		defer backend.Close()
		done := make(chan struct{}, 2) // either end closes both: a half that is left would wait forever
		go func() { _, _ = io.Copy(backend, conn); done <- struct{}{} }()
		go func() { _, _ = io.Copy(conn, backend); done <- struct{}{} }()
		<-done
		return
	}
}
