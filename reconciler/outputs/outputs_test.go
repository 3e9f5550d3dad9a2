package outputs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/outputs"
)

var ofCluster = map[string]string{
	holdfast.OutputRoleEndpoint: "api", holdfast.OutputRoleNodeCount: "nodes", holdfast.OutputRoleKubeconfig: "config",
}

// TestMeant states what is taken for an endpoint and for a number of nodes.
func TestMeant(t *testing.T) {
	t.Parallel()
	valid := map[string]string{
		`"https://1.2.3.4"`: "https://1.2.3.4", `"https://a.eks.amazonaws.com:443/"`: "https://a.eks.amazonaws.com:443/",
		`"10.0.0.1"`: "10.0.0.1", `"api.example.com:6443"`: "api.example.com:6443", `"[::1]:6443"`: "[::1]:6443", `"::1"`: "::1",
		`"http://[2001:db8::1]/k8s"`: "http://[2001:db8::1]/k8s",
	}
	for value, want := range valid {
		got, ignored := fill(ofCluster, []holdfast.Output{{Name: "api", Value: json.RawMessage(value)}})
		if got.Endpoint != want || len(ignored) > 0 {
			t.Errorf("endpoint %s: got %q, %v", value, got.Endpoint, ignored)
		}
	}
	for _, value := range []string{
		``, `null`, `""`, `3`, `["https://1.2.3.4"]`, `"https://"`, `"javascript:alert(1)"`, `"file:///etc"`, `"https://u:hunter22@h"`,
		`"https://h?token=hunter22"`, `"https://h#x"`, `"two words"`, `"https://h/\u001b[2J"`, `"https://h/a b"`, `"h:0"`, `"h:99999"`, `"-h"`, `"a/b"`,
		`"https://` + strings.Repeat("h", 3000) + `"`,
	} {
		got, ignored := fill(ofCluster, []holdfast.Output{{Name: "api", Value: json.RawMessage(value)}})
		if got.Endpoint != "" || len(ignored) != 1 || strings.Contains(ignored[0].Error(), "hunter22") {
			t.Errorf("endpoint %s: got %q, %v", value, got.Endpoint, ignored)
		}
	}
	for value, want := range map[string]int{`0`: 0, `3`: 3, `3.0`: 3, `"12"`: 12, `2147483647`: 2147483647} {
		got, ignored := fill(ofCluster, []holdfast.Output{{Name: "nodes", Value: json.RawMessage(value)}})
		if got.NodeCount != want || len(ignored) > 0 {
			t.Errorf("nodes %s: got %d, %v", value, got.NodeCount, ignored)
		}
	}
	for _, value := range []string{``, `null`, `-1`, `2.5`, `1e300`, `2147483648`, `"-1"`, `"3.5"`, `"three"`, `true`, `[3]`, `{}`} {
		got, ignored := fill(ofCluster, []holdfast.Output{{Name: "nodes", Value: json.RawMessage(value)}})
		if got.NodeCount != 0 || len(ignored) != 1 {
			t.Errorf("nodes %s: got %d, %v", value, got.NodeCount, ignored)
		}
	}
	sensitive := []holdfast.Output{
		{Name: "api", Sensitive: true, Value: json.RawMessage(`"https://1.2.3.4"`)}, {Name: "nodes", Sensitive: true}, {Name: "config", Sensitive: true},
	}
	got, ignored := fill(ofCluster, sensitive)
	if got.Endpoint != "" || got.NodeCount != 0 || got.Kubeconfig != "config" || len(ignored) != 2 {
		t.Errorf("sensitive ones: %+v, %v", got, ignored)
	}
	got, ignored = fill(ofCluster, nil)
	if got.Endpoint != "" || got.NodeCount != 0 || got.Kubeconfig != "" || len(ignored) > 0 {
		t.Errorf("no outputs, as their modules are off: %+v, %v", got, ignored)
	}
}

// fill is what outputs say of a cluster that said something else before.
func fill(means map[string]string, list []holdfast.Output) (holdfast.Applied, []error) {
	applied := holdfast.Applied{OutputRoles: means, Endpoint: "https://former", NodeCount: 9, Kubeconfig: "former"}
	ignored := outputs.Fill(&applied, list)
	return applied, ignored
}
