package kubetest_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/holdfast-dev/holdfast/internal/testenv/kubeserver"
)

// The API server takes what the chart renders, with each set of values: fields that it does not
// know, and values that it refuses, are errors. Nothing is stored.
func TestChartIsApplied(t *testing.T) {
	need(t)
	calls, err := dynamic.NewForConfig(&rest.Config{
		Host: api.URL, BearerToken: kubeserver.AdminToken, QPS: 500, Burst: 1000, TLSClientConfig: rest.TLSClientConfig{CAData: api.CA},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, name := range []string{"holdfast", "holdfast-jobs", "runs"} {
		if _, err := admin.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, values := range []string{"one", "three", "everything", "agent"} {
		applied := 0
		for _, o := range chartOf(t, values) {
			kind := o.GroupVersionKind()
			if slices.Contains([]string{"HTTPRoute", "ServiceMonitor"}, kind.Kind) { // of others, who are not here
				continue
			}
			var at dynamic.ResourceInterface = calls.Resource(resourceOf(kind))
			if kind.Kind != "Namespace" {
				namespace := o.GetNamespace()
				if namespace == "" {
					namespace = "holdfast"
				}
				at = calls.Resource(resourceOf(kind)).Namespace(namespace)
			}
			text, err := o.MarshalJSON()
			if err == nil {
				_, err = at.Patch(ctx, o.GetName(), "application/apply-patch+yaml", text, meta.PatchOptions{
					FieldManager: "helm", DryRun: []string{meta.DryRunAll}, FieldValidation: meta.FieldValidationStrict,
				})
			}
			if err != nil {
				t.Errorf("%s: %s %s: %v", values, kind.Kind, o.GetName(), err)
			}
			applied++
		}
		if applied < 6 {
			t.Errorf("%s: %d objects", values, applied)
		}
	}
}

// resourceOf is what the API server calls the objects of a kind.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	name := strings.ToLower(kind.Kind)
	switch {
	case strings.HasSuffix(name, "s"):
		name += "es"
	case strings.HasSuffix(name, "y"):
		name = strings.TrimSuffix(name, "y") + "ies"
	default:
		name += "s"
	}
	return kind.GroupVersion().WithResource(name)
}

// chartOf is what Helm makes of the chart.
func chartOf(t *testing.T, values string) (objects []unstructured.Unstructured) {
	t.Helper()
	const deploy = "../../deploy"
	cmd := exec.Command(filepath.Join(os.Getenv("HOLDFAST_TEST_PROVIDERS"), "helm"), "template", "holdfast", "--namespace", "holdfast",
		"--kube-version", "1.33.0", filepath.Join(deploy, "helm/holdfast"), "--values", filepath.Join(deploy, "testdata", values+".yaml"))
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm: %v\n%s", err, &errs)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096)
	for {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}
