package e2e_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// thiefCode searches its own environment, and the files and folders that it is
// told to look at, for secrets of two kinds. It says them in a form that no
// redaction can recognise: that must not be what keeps them safe. It does not look
// through /proc by itself: processes come and go, and the engine's try fails if
// what it tries works out another way when it is evaluated for the second time.
const thiefCode = `
locals {
  told  = jsondecode(file("${path.module}/targets.json"))
  found = flatten([
    for dir in local.told.dirs : [for p in try(fileset(dir, "**"), []) : "${dir}/${p}"]
  ])
  loot = distinct(flatten([
    for p in concat(["/proc/self/environ"], local.told.files, local.found) :
    try(regexall("(?:plan|apply)-secret-[0-9a-f]+", textdecodebase64(filebase64(p), "ISO-8859-1")), [])
  ]))
}

resource "terraform_data" "loot" {
  input = join(" ", [for s in local.loot : join(".", split("", s))])
}
`

// A pull request's code is executed when it is planned, while the apply of
// another cluster holds what no plan may have. It is another user's: neither
// its processes nor its files can be read.
func TestCodeInAPlanCannotSeeAnApply(t *testing.T) {
	t.Parallel()
	const planKey, applyKey = "plan-secret-1f0c2a77d4e955b8", "apply-secret-83b6e90d5c41fa27"
	w := newWorld(t, settings{"credentials": []any{
		map[string]any{"phase": "plan", "secrets": map[string]any{"PLAN_KEY": map[string]any{"file": "plan-key"}}},
		map[string]any{"phase": "apply", "secrets": map[string]any{"APPLY_KEY": map[string]any{"file": "apply-key"}}},
	}, "telemetry.logLevel": "debug"})
	needRoot(w)
	w.write("plan-key", planKey, 0o600)
	w.write("apply-key", applyKey, 0o600)
	w.start()

	// The apply has its key in environments, in a file, and as an open file.
	victim := w.fleet().open(worker("beta", "1", `echo "$APPLY_KEY" >note; exec 8<note; `+w.gated("work")))
	victim.untilPlanned("2 to create")
	victim.merge()
	w.untilSaid("work", "start")
	targets := w.targets(applyKey)

	thief := w.fleet().open(join(document("alpha"), moduleFile("alpha", thiefCode),
		files{"infra/alpha/targets.json": targets}))
	thief.untilPlanned("2 to create")
	dots := func(s string) string { return strings.Join(strings.Split(s, ""), ".") }
	if body := thief.comment(); !strings.Contains(body, dots(planKey)) {
		t.Fatalf("the thief does not even find its own key, so that the test proves nothing:\n%s", body)
	}
	if said := w.said("work"); said != "start" {
		t.Fatalf("the apply said %q while it was spied upon, want it to go on", said)
	}
	seen := w.everythingSaid()
	w.openGate("work")
	victim.untilApplied("2 created")
	w.untilIdle()
	for place, text := range w.everythingSaid() {
		seen[place+" in the end"] = text
	}
	forms := []string{
		applyKey, dots(applyKey), hex.EncodeToString([]byte(applyKey)),
		base64.StdEncoding.EncodeToString([]byte(applyKey)), strings.TrimPrefix(applyKey, "apply-secret-"), "a.p.p.l.y.-.s",
	}
	for place, text := range seen {
		for _, form := range forms {
			if strings.Contains(text, form) {
				t.Errorf("%s has the key of the apply, as %s", place, form)
			}
		}
	}
}

// targets are, as JSON, what targetsOf finds of the agent of the server's own machine.
func (w *world) targets(key string) string {
	w.t.Helper()
	text, err := json.Marshal(w.targetsOf(w.agentDir(holdfast.RunApply), key, append(w.leftBehind(), w.server.Process.Pid)))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// loot is where a thief is to look.
type loot struct {
	Dirs  []string `json:"dirs"`
	Files []string `json:"files"`
}

// targetsOf are the files and folders in which root finds something of the apply that
// is executed: of those processes, and below its agent's folder. The key must be
// among it.
func (w *world) targetsOf(agentDir, key string, pids []int) loot {
	w.t.Helper()
	list := loot{Dirs: []string{agentDir}}
	for _, pid := range pids {
		proc := fmt.Sprintf("/proc/%d/", pid)
		list.Dirs = append(list.Dirs, proc+"cwd")
		list.Files = append(list.Files, proc+"environ", proc+"cmdline")
		links, _ := filepath.Glob(proc + "fd/*")
		for _, link := range links {
			if info, err := os.Stat(link); err == nil && info.Mode().IsRegular() { // a pipe would never end
				list.Files = append(list.Files, link)
			}
		}
	}
	err := filepath.WalkDir(agentDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			list.Files = append(list.Files, path)
		}
		return nil // what is gone meanwhile is not a target
	})
	if err != nil {
		w.t.Fatal(err)
	}
	kinds := make(map[string]bool)
	for _, path := range list.Files {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), key) {
			kinds[filepath.Base(filepath.Dir(path))] = true
			kinds[filepath.Base(path)] = true
		}
	}
	for _, kind := range []string{"environ", "fd", "note"} {
		if !kinds[kind] {
			w.t.Fatalf("there is nothing to steal in %s", kind)
		}
	}
	return list
}

// The two agents are two users, and neither is the server's.
func TestAgentsAreTwoUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	needRoot(w)
	w.start()
	owner := func(path string) *syscall.Stat_t {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t)
	}
	plan, apply := owner(w.agentDir(holdfast.RunPlan)), owner(w.agentDir(holdfast.RunApply))
	if plan.Uid == 0 || apply.Uid == 0 || plan.Uid == apply.Uid {
		t.Errorf("plans are of user %d, applies of user %d: want two, and not root", plan.Uid, apply.Uid)
	}
	if plan.Gid == 0 || apply.Gid == 0 || plan.Gid == apply.Gid {
		t.Errorf("plans are of group %d, applies of group %d: want two, and not root's", plan.Gid, apply.Gid)
	}
	if code := w.stop(); code != 0 {
		t.Errorf("the server ended with code %d", code)
	}
	w.exited = nil
	if pids := w.leftBehind(); len(pids) > 0 {
		t.Errorf("processes %v were left behind", pids)
	}
}
