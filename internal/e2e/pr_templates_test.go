package e2e_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// templateFiles is a template with one module, whose resource has the text.
func templateFiles(dir, text string) files {
	return files{
		dir + "/template.yaml": `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: box}
spec:
  providers:
    demo:
      modules:
        - name: box
          source: ./modules/box
          inputs: {size: "${var.size}"}
  variables:
    type: object
    required: [size]
    properties:
      size: {type: integer, minimum: 1, maximum: 9}
`,
		dir + "/modules/box/main.tf": `variable "size" { type = number }
resource "terraform_data" "box" {
  count = var.size
  input = "` + text + `"
}
`,
	}
}

func boxed(name, template, size string) files {
	return document(name, "template: "+template, "provider: demo", "variables: {size: "+size+"}")
}

// Versions of a template are tags of its repository. One that is not there, or
// not what it was, is refused where it is named.
func TestTemplateVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	blueprints := w.addRepo("acme/blueprints", settings{"templates": map[string]string{"box": "box"}})
	first := blueprints.commit(templateFiles("box", "one"))
	blueprints.git.Tag("box/v1.0.0", first)
	w.start()
	fleet := w.fleet()

	pr := fleet.open(boxed("alpha", "{name: box, version: 1.0.0}", "2"))
	pr.untilPlanned("2 to create")
	pr.untilComment("box 1.0.0")
	pr.merge()
	pr.untilApplied("2 created")

	missing := fleet.open(boxed("beta", "{name: box, version: 1.0.1}", "2"))
	fleet.untilStatus(missing.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/beta.yaml:8", "1.0.1")
	missing.untilComment("clusters/beta.yaml:8", "1.0.1", "1.0.0")
	outside := fleet.open(boxed("gamma", "{name: box, version: 1.0.0}", "10"))
	fleet.untilStatus(outside.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/gamma.yaml:10", "size")

	// The version appears: its pull request is planned without a push to it.
	second := blueprints.commit(templateFiles("box", "two"))
	blueprints.git.Tag("box/v1.0.1", second)
	blueprints.hub.Push("refs/tags/box/v1.0.1", "", second)
	missing.untilPlanned("2 to create")

	// A version that was moved is refused, wherever it is named from now on.
	blueprints.git.Tag("box/v1.0.0", second)
	blueprints.hub.Push("refs/tags/box/v1.0.0", first, second)
	w.untilWaiting("alpha", "Invalid")
	moved := fleet.open(boxed("delta", "{name: box, version: 1.0.0}", "1"))
	fleet.untilStatus(moved.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/delta.yaml:8")
	moved.untilComment("clusters/delta.yaml:8", "box/v1.0.0", "moved")
	if n := w.countCalls("apply"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}

	blueprints.git.Tag("box/v1.0.0", first)
	blueprints.hub.Push("refs/tags/box/v1.0.0", second, first)
	w.untilWaiting("alpha", "")
	moved.untilPlanned("1 to create")
}

// A template that is named by its path affects the clusters on that path, at the
// revision of the pull request, and nobody else.
func TestTemplateByPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	fleet := w.fleet()
	fleet.commit(join(
		templateFiles("templates/small", "small"), templateFiles("templates/large", "large"),
		boxed("one", "{path: ../templates/small}", "1"), boxed("two", "{path: ../templates/small}", "2"),
		boxed("three", "{path: ../templates/large}", "3"),
	))
	w.start()
	for _, name := range []string{"one", "two", "three"} {
		w.untilWaiting(name, "Unreviewed")
	}

	pr := fleet.open(files{
		"templates/small/modules/box/main.tf": templateFiles("x", "smaller")["x/modules/box/main.tf"],
		"templates/large/README.md":           "Words.\n",
	})
	pr.untilPlanned("2 clusters: 3 to create")
	pr.merge()
	pr.untilApplied("applied 2 clusters: 3 created")
	w.untilIdle()
	if n := len(w.runs("three")); n != 1 {
		t.Errorf("three has %d runs, want the one that waits", n)
	}
}
