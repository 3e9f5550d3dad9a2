package e2e_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// What is moved, imported, forgotten, removed and deposed, beside values that no plan
// file has: the comment tells each, and the apply comes to exactly that.
func TestWhatMovesIsShownAndApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	fleet := w.fleet()
	code := func(body string) files { return files{"infra/alpha/main.tf": body} }
	lasting := func(trigger, command string) string {
		return `
resource "terraform_data" "lasting" {
  triggers_replace = "` + trigger + `"
  lifecycle { create_before_destroy = true }
  provisioner "local-exec" { command = "` + command + `" }
}
`
	}
	fleet.bring(join(document("alpha"), code(`
resource "terraform_data" "was" { input = "x" }
resource "terraform_data" "stays" { input = "s" }
resource "terraform_data" "forgotten" { input = "f" }
resource "terraform_data" "removed" { input = "r" }
`+lasting("one", "true"))))

	const moves = `
variable "token" {
  type      = string
  ephemeral = true
}
resource "terraform_data" "is" { input = "y" }
moved {
  from = terraform_data.was
  to   = terraform_data.is
}
resource "terraform_data" "stayed" { input = "s" }
moved {
  from = terraform_data.stays
  to   = terraform_data.stayed
}
removed {
  from = terraform_data.forgotten
  lifecycle { destroy = false }
}
removed {
  from = terraform_data.removed
  lifecycle { destroy = true }
}
import {
  to = terraform_data.found
  id = "the-id"
}
resource "terraform_data" "found" { input = "new" }
resource "terraform_data" "given" {
  provisioner "local-exec" {
    command     = "test \"$TOKEN\" = of-the-document"
    environment = { TOKEN = var.token }
  }
}
`
	given := document("alpha", "variables: {token: of-the-document}")
	moved := fleet.open(join(given, code(moves+lasting("one", "true"))))
	moved.untilPlanned("1 to destroy, 1 to forget, 2 to change, 1 to create, 1 to import, 2 to move")
	moved.untilComment("`terraform_data.was` → `terraform_data.is` |", "`terraform_data.stays` → `terraform_data.stayed` |", "👋 forget | `terraform_data.forgotten` |",
		"`terraform_data.removed` |", "`terraform_data.found` import of `the-id` |", "`terraform_data.given` |")
	shown := w.newest("alpha", holdfast.RunPlan)
	moved.merge()
	moved.untilApplied("1 destroyed, 1 forgotten, 2 changed, 1 created, 1 imported, 2 moved")
	if done := w.newest("alpha", holdfast.RunApply); shown.PlanDigest == "" || done.PlanDigest != shown.PlanDigest || done.Counts != shown.Counts {
		t.Errorf("applied was %s %+v, shown %s %+v", done.PlanDigest, done.Counts, shown.PlanDigest, shown.Counts)
	}

	// A replacement that fails in its middle leaves its old object, deposed.
	failing := fleet.open(code(moves + lasting("two", "exit 1")))
	failing.untilPlanned("1 to replace")
	failing.merge()
	w.untilWaiting("alpha", holdfast.ReasonApplyFailed)
	mended := fleet.open(code(moves + lasting("two", "true")))
	mended.untilPlanned("1 to replace, 1 to destroy")
	mended.untilComment("`terraform_data.lasting` | it is tainted", "`terraform_data.lasting (deposed object ")
	shown = w.newest("alpha", holdfast.RunPlan)
	mended.merge()
	mended.untilApplied("1 replaced, 1 destroyed")
	if done := w.newest("alpha", holdfast.RunApply); done.PlanDigest != shown.PlanDigest {
		t.Errorf("applied was %s, shown %s", done.PlanDigest, shown.PlanDigest)
	}
}
