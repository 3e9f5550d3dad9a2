package server_test

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/server"
)

func checkOwner(t *testing.T, info fs.FileInfo, socket server.Socket) {
	t.Helper()
	if !socket.ChangeOwner {
		return // only root can give a socket away
	}
	stat := info.Sys().(*syscall.Stat_t)
	if int(stat.Uid) != socket.UID || int(stat.Gid) != socket.GID {
		t.Errorf("socket belongs to %d:%d, want %d:%d", stat.Uid, stat.Gid, socket.UID, socket.GID)
	}
}
