package templates_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// TestCodeOfWhoeverMayOpenAPullRequest: nobody has reviewed the code, and the server reads
// it. It says what there is too much of, at the file.
func TestCodeOfWhoeverMayOpenAPullRequest(t *testing.T) {
	t.Parallel()
	const n = 150_000
	many := strings.Repeat
	for name, c := range map[string]struct{ file, code, want string }{
		"brackets behind a comment": {
			"main.tf", "# " + many(")", n) + "\nlocals {\n  a = " + many("(", n) + "1" + many(")", n) + "\n}\n",
			"main.tf:3: expressions are nested deeper than 1,000 levels",
		},
		"signs": {"main.tf", "locals {\n  a = " + many("-/**/", n) + "1\n}\n", "main.tf:2: expressions are nested deeper"},
		"directives": {
			"main.tf", "locals {\n  a = \"" + many("%{if a}", n) + "\"\n}\n", "main.tf:2: expressions are nested deeper",
		},
		"JSON": {
			"x.tf.json", `{"//": "` + many("]", n) + `", "locals": {"a": ` + many("[", n) + many("]", n) + "}}",
			"x.tf.json:1: expressions are nested deeper",
		},
		"a type in JSON": {"x.tf.json", `{"variable": {"x": {"type": "` + many("(", n) + many(")", n) + `"}}}`, ""},
		"variables": {
			"a.auto.tfvars", "a = \"" + many("%{if a}", n) + "\"\n", "",
		},
		"a number":       {"main.tf", "module \"m\" {\n  source = \"../${1e600000000}\"\n}\n", "main.tf:2: number has more than 1,000 digits"},
		"a small number": {"main.tf", "module \"m\" {\n  source = \"../${1e-3000000}\"\n}\n", "main.tf:2: number has more than 1,000 digits"},
		"a number that is made": {
			"main.tf", "module \"m\" {\n  source = \"../${\"1e600000000\" * 1}\"\n}\n", "",
		},
		"texts in loops": {
			"main.tf", fmt.Sprintf("variable \"nodes\" {\n  nullable = [for a in [%[1]s] : [for b in [%[1]s] : \"%[2]s${a}\"]]\n}\n", many("1,", 300), many("x", 1<<20)), "",
		},
		"lines of a text": {"main.tf", "locals {\n  a = <<X\n" + many("b\n", n) + "X\n}\n", "texts have too many lines"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults := resolveFaults(t, tree(with(moduleFiles(), "infra/own/"+c.file, c.code)), clusterOf(t, "c.yaml", moduleCluster))
			if got := fmt.Sprint(faults); !strings.Contains(got, c.want) {
				t.Errorf("%.300s, want %q", got, c.want)
			}
		})
	}
}

// TestOneContentUnderManyNames: a repository has it once, and it is not read without end.
func TestOneContentUnderManyNames(t *testing.T) {
	t.Parallel()
	files := tree(moduleFiles())
	file := &fstest.MapFile{Data: []byte("locals {}\n/*" + strings.Repeat("x", 2<<20) + "*/\n"), Mode: 0o644}
	for i := range 1_000 {
		files.MapFS[fmt.Sprintf("infra/own/a%03d.tf", i)] = file
	}
	faults := resolveFaults(t, files, clusterOf(t, "c.yaml", moduleCluster))
	if want := "infra/own/a015.tf: code of a folder has more than 33554432 bytes, with this file"; !strings.Contains(fmt.Sprint(faults), want) {
		t.Errorf("%.300v, want %q", faults, want)
	}
}

// TestLargeCode: what is large and flat is read.
func TestLargeCode(t *testing.T) {
	t.Parallel()
	files := with(moduleFiles(), "infra/own/large.tf", "# "+strings.Repeat("why? ", 10_000)+"\nlocals {\n  nets = [\n"+
		strings.Repeat("    \"10.0.0.0/8\",\n", 50_000)+"  ]\n  text = \""+strings.Repeat("${1}?", 5_000)+"\"\n}\n")
	resolve(t, tree(files), clusterOf(t, "c.yaml", moduleCluster))
}
