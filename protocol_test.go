package holdfast_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestCheckProtocol: a server speaks its own protocol and the previous one. Agents of the first
// one name none.
func TestCheckProtocol(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]string{
		holdfast.Protocol: "", holdfast.PreviousProtocol: "", holdfast.Protocol + 1: "upgrade the server first",
		holdfast.PreviousProtocol - 1: "upgrade the agent", -1: "upgrade the agent",
	} {
		if version < 1 && holdfast.PreviousProtocol == 1 {
			want = ""
		}
		err := holdfast.CheckProtocol(version)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckProtocol(%d) = %v, want %q", version, err, want)
		}
	}
}
