//go:build !race

package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// newHostileLab is a lab in which a script is executed in the root module when the
// real engine has planned, as what a plan executes could do it. It has what the
// script of newScriptLab has, and $PLAN is the plan file.
func newHostileLab(t *testing.T, script string, providers ...string) *lab {
	t.Helper()
	return newScriptLab(t, `PATH=/usr/local/bin:/usr/bin:/bin
[ "$1" = plan ] || exec "$engine" "$@"
"$engine" "$@"
code=$?
for argument; do
	case $argument in -out=*) PLAN=${argument#-out=} ;; esac
done
`+script+`
exit $code`, providers...)
}

// newForgerLab is a lab whose plans are forged as its world's file forge says, if there is
// one. What is the same for many ways to forge is done once before them.
func newForgerLab(t *testing.T, providers ...string) *lab {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newHostileLab(t, fmt.Sprintf("[ ! -e WORLD/forge ] || %q %s \"$(cat WORLD/forge)\" \"$PLAN\" || code=9", self, forgerArgument), providers...)
}

// What a plan executes puts its own provider in the place of the prepared one: neither
// the start of the engine that shows the plan executes it, which could say anything
// then, nor the one that applies it.
func TestPlanChoosesNoProviders(t *testing.T) {
	t.Parallel()
	l := newHostileLab(t, `
for real in .terraform/providers/*/*/*/*/*/*; do : ; done
rm .terraform/providers
mkdir -p ".terraform/$(dirname "${real#.terraform/}")"
printf '#!/bin/sh\necho executed >>WORLD/loot\nexec sleep 1\n' >"$real"
chmod 755 "$real"
sed '/hashes/,/]/d' .terraform.lock.hcl >lock && mv lock .terraform.lock.hcl
printf 'x' >.terraform/environment
echo 'terraform {' >broken.tf
`, "cloud")
	l.apply("run", map[string]string{"main.tf": cloudRoot})
	if loot, err := os.ReadFile(filepath.Join(l.world, "loot")); err == nil {
		t.Errorf("a provider of the plan's was executed:\n%s", loot)
	}
	if got := l.resources("run"); len(got) == 0 {
		t.Error("nothing was made")
	}
}

// What a plan executes changes the workspace or the plan file: new files that the
// code or a value of the plan names are there in the apply, as an archive that it
// uploads must be, and others are not; with any other change the plan is refused, in the
// pull request as in the apply.
func TestPlanChangesItsWorkspace(t *testing.T) {
	t.Parallel()
	root := map[string]string{
		"infra/main.tf":      "module \"m\" {\n  source = \"../modules/m\"\n}\n",
		"infra/more.tf.json": `{"locals": {"more": 1}}`,
		"infra/run.sh": "cat $1 made/new.txt out/a/b.zip listed/x.txt ../../home/.gitconfig ../../home/.aws/config >WORLD/seen 2>/dev/null\n" +
			"for hook in hooks/*; do sh $hook; done\nls -a . made made/d out out/a lib .hidden >WORLD/files 2>/dev/null; true\n",
		"infra/hooks/a.sh":           "echo hook >>WORLD/seen\n",
		"infra/lib/.keep":            "",
		"infra/settings.auto.tfvars": "from = \"listed/x.txt\"\n",
		"infra/variables.tf":         "variable \"from\" {}\n",
		"infra/data/x.txt":           "x",
		"modules/m/module.tf": "resource \"terraform_data\" \"x\" {\n  input = \"${path.root}/out/a/${\"b\"}.zip\"\n" +
			"  provisioner \"local-exec\" { command = \"sh ./run.sh ${path.module}/lambda.zip made/\" }\n}\n",
	}
	in := func(a *protocol.Assignment) { a.Dir = "infra" }
	for name, c := range map[string]struct{ script, says string }{
		"new files": {script: "mkdir made; echo new >made/new.txt; mkdir -p made/d made/empty; ln -s /etc made/d/link; ln -s ../new.txt made/d/inside; ln -s /proc/self/environ made/env.zip; echo 'x {' >extra.tf\n" +
			"mkdir -p out/a out/__pycache__ .hidden listed; echo zip >out/a/b.zip; echo zip >out/c.zip; echo listed >listed/x.txt\n" +
			"echo lambda >../modules/m/lambda.zip; echo 'echo bad >>WORLD/seen' | tee hooks/b.sh lib/x.py run.py .hidden/x out/__pycache__/x.pyc >/dev/null\n" +
			"cd ../../home && mkdir .aws && echo bad | tee .gitconfig >.aws/config"},
		"a file of the bundle":    {script: "echo 'echo bad >WORLD/seen' >run.sh", says: "infra/run.sh, a file of the repository"},
		"a file that is gone":     {script: "rm data/x.txt", says: "infra/data/x.txt"},
		"a folder that is a link": {script: "mv data other; ln -s other data", says: "infra/data,"},
		"a folder that is gone":   {script: "cd ..; rm -r infra", says: "infra,"},
		"all of it":               {script: "cd ..; rm -r infra modules; cd ..; rmdir bundle; echo >bundle", says: "the repository"},
		"the code that was planned": {
			script: "cp ../modules/m/module.tf keep; sed 's/sh .\\/run.sh/echo bad >WORLD\\/..\\/seen/' keep >../modules/m/module.tf\n" +
				`$engine "$@"; mv keep ../modules/m/module.tf`,
			says: "another modules/m/module.tf than the repository",
		},
		"code that was not planned": {script: `mv more.tf.json keep; $engine "$@"; mv keep more.tf.json`, says: "lacks infra/more.tf.json"},
		"the modules that were planned": {
			script: `cp -r ../modules/m own; sed -i 's#"Dir":"../modules/m"#"Dir":"own"#' .terraform/modules/modules.json; $engine "$@"`,
			says:   "which is not of this root module",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHostileLab(t, c.script)
			planned, _ := l.run("plan-1", holdfast.RunPlan, root, in)
			if c.says != "" {
				l.want(planned, "plan-1", holdfast.RunErrored, "UntrustedPlan")
				if f := planned.Failure; !strings.Contains(f.Summary, c.says) || f.Transient {
					t.Errorf("failure %+v", f)
				}
				return
			}
			l.want(planned, "plan-1", holdfast.RunPlanned, "")
			applied, _ := l.run("apply-1", holdfast.RunApply, root, func(a *protocol.Assignment) {
				in(a)
				a.Reviews = review("plan-1", planned)
			})
			l.want(applied, "apply-1", holdfast.RunApplied, "")
			if seen, err := os.ReadFile(filepath.Join(l.world, "seen")); err != nil || string(seen) != "lambda\nnew\nzip\nlisted\nhook\n" {
				t.Errorf("the apply found %q, %v", seen, err)
			}
			files, err := os.ReadFile(filepath.Join(l.world, "files"))
			if err != nil || !strings.Contains(string(files), "\nnew.txt\n") || !strings.Contains(string(files), "\nb.zip\n") || !strings.Contains(string(files), "\ninside\n") {
				t.Errorf("the apply found the files %q, %v", files, err)
			}
			for _, name := range []string{"b.sh", "x.py", "run.py", ".hidden", "__pycache__", "c.zip", "extra.tf", "link", "env.zip"} {
				if strings.Contains(string(files), "\n"+name+"\n") {
					t.Errorf("%s is in the apply, which nothing names", name)
				}
			}
			if log := l.log("apply-1"); !strings.Contains(log, "8 files created by the plan are not available to the apply") || !strings.Contains(log, `"infra/hooks/b.sh"`) {
				t.Errorf("the log does not say what is left out:\n%s", log)
			}
		})
	}
}

// What a plan executes nests folders deeper than anything goes through: nobody
// stumbles over them, and an apply does not begin.
func TestPlanNestsFolders(t *testing.T) {
	t.Parallel()
	const deep = `
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	mkdir -p $(printf '%0.sd/' $(seq 100)) && cd -P $(printf '%0.sd/' $(seq 100))
done
`
	root := map[string]string{"main.tf": "resource \"terraform_data\" \"x\" {}\n"}
	for _, c := range []struct {
		name, script string
		reason       holdfast.Reason
	}{
		{name: "in the bundle", script: deep, reason: "WorkspaceTooLarge"},
		{name: "in HOME", script: "cd ../home\n" + deep},
		{name: "not too deep", script: "mkdir -p $(printf '%0.sd/' $(seq 150))"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newHostileLab(t, c.script)
			planned, _ := l.run("plan-1", holdfast.RunPlan, root, nil)
			if c.reason == "" {
				l.want(planned, "plan-1", holdfast.RunPlanned, "")
			} else {
				l.want(planned, "plan-1", holdfast.RunErrored, c.reason)
				if f := planned.Failure; f.Transient || !strings.Contains(f.Summary, "nested deeper than") || len(f.Summary) > 300 {
					t.Errorf("failure %+v", f)
				}
			}
			applied, _ := l.run("apply-1", holdfast.RunApply, root, func(a *protocol.Assignment) { a.Reviews = review("plan-1", planned) })
			if c.reason == "" {
				l.want(applied, "apply-1", holdfast.RunApplied, "")
			} else {
				l.want(applied, "apply-1", holdfast.RunErrored, c.reason)
				if applied.Applying {
					t.Error("it says that it has begun to apply")
				}
			}
			if left, _ := filepath.Glob(filepath.Join(l.work, "workspaces", "*")); len(left) > 0 {
				t.Errorf("workspaces left: %v", left)
			}
		})
	}
}
