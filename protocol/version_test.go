package protocol_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/protocol"
)

// TestCheckProtocol: a server speaks its own protocol and the previous one. Agents of the first
// one name none.
func TestCheckProtocol(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]string{
		protocol.Version: "", protocol.PreviousVersion: "", protocol.Version + 1: "upgrade the server first",
		protocol.PreviousVersion - 1: "upgrade the agent", -1: "upgrade the agent",
	} {
		if version < 1 && protocol.PreviousVersion == 1 {
			want = ""
		}
		err := protocol.Check(version)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckProtocol(%d) = %v, want %q", version, err, want)
		}
	}
}
