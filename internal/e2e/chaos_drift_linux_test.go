package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// The cluster alpha has an object in a cloud, which is a folder of files: who edits
// one changes the world behind Holdfast's back.

const cloudObject = "cloud_cluster.main.json"

// cloudCode is the part of alpha's root module that keeps the object.
func (w *world) cloudCode() string {
	w.t.Helper()
	return `
terraform {
  required_providers {
    cloud = { source = "holdfast-dev/cloud" }
  }
}

provider "cloud" {
  folder = "` + w.thing("alpha", "") + `"
}

resource "cloud_cluster" "main" {
  name = "main"
  size = tonumber(var.generation)
}
`
}

var sizeOfObject = regexp.MustCompile(`"size": \d+`)

// editCloud changes the object of alpha, or takes it away.
func (m *monkey) editCloud() func() bool {
	m.w.t.Helper()
	path := m.w.thing("alpha", cloudObject)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil // it was never made, or is gone
	}
	edited := sizeOfObject.ReplaceAll(data, []byte(`"size": 0`))
	if m.luck.IntN(2) == 0 {
		err = os.Remove(path)
	} else if err = os.WriteFile(path+".edit", edited, 0o644); err == nil { //nolint:gosec // others read it
		err = os.Rename(path+".edit", path)
	}
	if err != nil {
		m.w.t.Fatal(err)
	}
	m.edited = true
	return happened
}

// untilReverted has alpha checked if somebody has edited its object, and waits until
// that is as Git says again: its document asks for that.
func (c *chaos) untilReverted(pr *pull) {
	c.w.t.Helper()
	if !c.m.edited || c.present["alpha"].generation == "" {
		return
	}
	c.m.edited = false
	c.checks++
	want := `"size": ` + c.present["alpha"].generation + ","
	c.w.until("the edited object of alpha is as Git says", func() (bool, string) {
		rec := c.w.record("alpha")
		is := c.w.things("alpha")
		if rec.Drift.Status == holdfast.DriftNone && rec.Waiting == "" && strings.Contains(is, want) {
			return true, ""
		}
		check := c.w.newest("alpha", holdfast.RunDrift)
		if check.ID == c.checked || check.Status.Done() && !check.Status.Good() { // none yet, or it failed
			c.give("alpha", check, "holdfast drift check alpha")
		}
		return false, fmt.Sprintf("%s; drift %q; %s", is, rec.Drift.Status, c.help(pr, "alpha", rec))
	})
	c.checked = c.w.newest("alpha", holdfast.RunDrift).ID
}
