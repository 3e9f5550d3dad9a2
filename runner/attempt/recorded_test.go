package attempt

import (
	"fmt"
	"strings"
	"testing"
)

// A state in a file is one only where that outlives the run.
func TestCheckLocalState(t *testing.T) {
	t.Parallel()
	o := Isolation{ReadOnly: []string{"/srv/read"}, Writable: []string{"/srv/states", "/srv/one.tfstate"}}
	for path, kept := range map[string]bool{
		`"/srv/states/a.tfstate"`: true, `"/srv/one.tfstate"`: true,
		`"/tmp/a.tfstate"`: false, `"/srv/states/../a.tfstate"`: false, `"/srv/read/a.tfstate"`: false, `"a.tfstate"`: false, `null`: false,
	} {
		err := checkLocalState(fmt.Appendf(nil, `{"backend": {"type": "local", "config": {"path": %s}}}`, path), o)
		if kept != (err == nil) || err != nil && !strings.Contains(err.Error(), strings.Trim(path, `"nul`)) {
			t.Errorf("a state in %s: %v", path, err)
		}
	}
	if err := checkLocalState([]byte(`{"backend": {"type": "s3", "config": {"bucket": "b"}}}`), o); err != nil {
		t.Error(err)
	}
}
