package templates_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// TestLoadRemembers: a commit that changes something else does not make the
// template be read again; one that changes what it is made of does.
func TestLoadRemembers(t *testing.T) {
	t.Parallel()

	load := func(resolver *templates.Resolver, files map[string]string) *templates.Template {
		loaded, faults, err := resolver.Load(tree(files), "t")
		if err != nil || len(faults) > 0 {
			t.Fatal(err, faults)
		}
		return loaded
	}
	linked := with(richFiles(), "t/modules/logs/shared.tf", "-> ../../../shared/x.tf", "shared/x.tf", "")
	for name, tc := range map[string]struct {
		files map[string]string
		same  bool
	}{
		"another folder":   {with(linked, "clusters/a.yaml", "x", "t/README.md", "x", "t/modules/unused/main.tf", "x"), true},
		"the same again":   {linked, true},
		"its file":         {with(linked, "t/template.yaml", richTemplate+"\n"), false},
		"a module":         {with(linked, "t/modules/logs/x.txt", "x"), false},
		"what a link says": {with(linked, "shared/x.tf", "#"), false},
		"a lock file":      {with(linked, "t/.terraform.lock.hcl", "#"), false},
	} {
		resolver := templates.NewResolver(nil)
		if got := load(resolver, linked) == load(resolver, tc.files); got != tc.same {
			t.Errorf("%s: the same template: %v, want %v", name, got, tc.same)
		}
	}

	// What is missing comes back as a fault, and goes when it is there again.
	resolver := templates.NewResolver(nil)
	first := load(resolver, linked)
	broken := without(linked, "t/modules/monitoring/main.tf")
	for range 2 {
		if _, faults, err := resolver.Load(tree(broken), "t"); err != nil || len(faults) == 0 {
			t.Errorf("a module that is gone: %v, %v", faults, err)
		}
	}
	if load(resolver, linked) != first {
		t.Error("it is read again")
	}
}

// TestLoadRemembersEachVersion: of however many pull requests that edit a template, or one of
// its modules, in a folder, each version is read once, and not again with each commit elsewhere.
func TestLoadRemembersEachVersion(t *testing.T) {
	t.Parallel()

	const versions = 40
	resolver := templates.NewResolver(nil)
	load := func(tr *memTree) *templates.Template {
		loaded, faults, err := resolver.Load(tr, "t")
		if err != nil || len(faults) > 0 {
			t.Fatal(err, faults)
		}
		return loaded
	}
	for _, at := range []string{"t/template.yaml", "t/modules/logs/main.tf"} {
		var first []*templates.Template
		for push := range 3 {
			for i := range versions {
				tr := tree(with(richFiles(), at, fmt.Sprintf("%s\n# %d\n", richFiles()[at], i), "README.md", fmt.Sprint("push ", push)))
				loaded := load(tr)
				if push == 0 {
					first = append(first, loaded)
				} else if loaded != first[i] || tr.reads > 0 {
					t.Fatalf("%s: version %d is read again with push %d: %d files", at, i, push, tr.reads)
				}
			}
		}
	}
}

// TestOneTemplateForMany: clusters of one template are resolved at once, with
// several sets of modules.
func TestOneTemplateForMany(t *testing.T) {
	t.Parallel()

	resolver := templates.NewResolver(nil)
	tr := tree(richFiles())
	var wg sync.WaitGroup
	for i := range 20 {
		doc := clusterWith(t, fmt.Sprintf("node_count: %d", 3+i), fmt.Sprintf("enable_monitoring: %v", i%2 == 0), "db_password: {secret: {env: A}}")
		wg.Go(func() {
			for range 10 {
				root, faults, err := resolver.Using(nil).Resolve(t.Context(), tr, doc)
				if err != nil || len(faults) > 0 {
					t.Error(err, faults)
					return
				}
				if _, _, err := root.Bundle(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestResolverIsSafe resolves at once what shares a template, for the race
// detector.
func TestResolverIsSafe(t *testing.T) {
	t.Parallel()

	tr := tree(demoFiles())
	resolver := templates.NewResolver(nil)
	doc := clusterOf(t, "clusters/prod-eu.yaml", demoCluster)
	digests := make([]holdfast.Digest, 16)
	var group sync.WaitGroup
	for i := range digests {
		group.Go(func() {
			root, faults, err := resolver.Resolve(t.Context(), tr, doc)
			if err != nil || faults != nil {
				t.Error(err, faults)
				return
			}
			_, digests[i], err = root.Bundle()
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, digest := range digests {
		if !digest.Equal(digests[0]) {
			t.Errorf("bundles differ: %v", digests)
		}
	}
}
