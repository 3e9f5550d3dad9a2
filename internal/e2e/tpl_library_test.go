package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// library is the template that we ship, as somebody has it in their repository.
func library(t testing.TB) files {
	t.Helper()
	out := make(files)
	err := fs.WalkDir(os.DirFS("../../templates/library"), "kubernetes", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile("../../templates/library/" + path)
		out[path] = string(data)
		return err
	})
	if err != nil || len(out) < 20 {
		t.Fatalf("read the library: %d files, %v", len(out), err)
	}
	return out
}

// The template that we ship makes clusters on no cloud at all: its examples are
// applied as they are, what is switched off goes, and wrong words are told with
// the right ones.
func TestLibraryOnNoCloud(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, nil)
	infra := w.addRepo("acme/infra", nil)
	blueprints := w.addRepo("acme/templates", settings{"templates": map[string]string{"kubernetes": "kubernetes"}})
	blueprints.commit(library(t))
	blueprints.release("1.0.0")
	w.start()
	example := func(name string) string {
		text := library(t)["kubernetes/examples/local-"+name+".yaml"]
		return strings.Replace(text, "template: {path: ..}", "template: {name: kubernetes, version: 1.0.0}", 1)
	}

	basic, advanced := example("basic"), strings.Replace(example("advanced"), "protected: true", "protected: false", 1)
	pr := infra.open(files{"clusters/dev.yaml": basic, "clusters/prod.yaml": advanced})
	pr.untilPlanned("2 clusters")
	pr.merge()
	pr.untilApplied("applied 2 clusters")
	w.until("it is known what the outputs mean", func() (bool, string) { // an apply has ended before its outputs are read
		text := w.do("describe cluster dev-local")
		return strings.Contains(text, "Nodes:") && strings.Contains(text, "Endpoint:") && strings.Contains(text, "Kubeconfig:"), text
	})
	w.until("it is known what those of prod-local mean", func() (bool, string) {
		a := w.record("prod-local").Applied
		return a.NodeCount == 7 && strings.HasPrefix(a.Endpoint, "https://") && a.Kubeconfig != "",
			fmt.Sprintf("%d nodes at %q, kubeconfig %q", a.NodeCount, a.Endpoint, a.Kubeconfig)
	})

	off := infra.open(files{"clusters/dev.yaml": strings.Replace(basic, "enable_monitoring: true", "enable_monitoring: false", 1)})
	off.untilPlanned("to destroy")
	off.merge()
	off.untilApplied("destroyed")
	if counts := w.newest("dev-local", holdfast.RunApply).Counts; counts.Delete == 0 || counts.Replace > 0 || counts.Create > 0 {
		t.Errorf("monitoring was switched off by %+v, want resources destroyed only", counts)
	}

	wrong := strings.NewReplacer("node_count: 3", "node_count: 0", "enable_monitoring", "enable_monitorin").Replace(basic)
	faulty := infra.open(files{"clusters/dev.yaml": wrong})
	infra.untilStatus(faulty.head, holdfast.ContextPlan, holdfast.StatusFailure, "2 errors")
	faulty.untilComment("clusters/dev.yaml:12:", "at least 1, not 0", "did you mean \"enable\\_monitoring\"?")
}
