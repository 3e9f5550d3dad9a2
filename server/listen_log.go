package server

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// errorLog is where a listener's HTTP server writes what went wrong with a peer. A
// handshake that failed is logged, once a minute for each listener: an agent that does
// not trust our certificate says so on another machine only. The public one is
// everybody's to try.
func (s *Server) errorLog(name string) *log.Logger {
	return log.New(&peerTrouble{s: s, listener: name}, "", 0)
}

type peerTrouble struct {
	s        *Server
	listener string
}

func (p *peerTrouble) Write(line []byte) (int, error) {
	text, level := strings.TrimSpace(string(line)), slog.LevelDebug
	handshake := strings.Contains(text, "TLS handshake error") && !strings.HasSuffix(text, ": EOF") // a probe that only connects
	if handshake && p.listener != "public" && p.s.refused.Due(p.listener, "handshake", p.s.now()) {
		level = slog.LevelWarn
	}
	p.s.log.Log(context.Background(), level, "connection failed", "listener", p.listener, "err", text)
	return len(line), nil
}
