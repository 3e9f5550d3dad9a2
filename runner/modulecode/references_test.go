package modulecode

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a provider is configured with is found in dynamic blocks, too, of which the
// engine's JSON has nothing.
func TestReferencesOfProviders(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"main.tf": `provider "x" {
  region = var.region
  dynamic "assume_role" {
    for_each = local.roles
    content { arn = data.a.b["k"].arn }
  }
}`,
		"main.tf.json": `{"provider": {"x": {"region": "${var.region}", "dynamic": {"assume_role":
			{"for_each": "${local.roles}", "content": {"arn": "${data.a.b[\"k\"].arn}"}}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := ReadReferences(t.Context(), dir, Terraform)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range found.Providers {
				got = append(got, strings.Join(r, "."))
			}
			slices.Sort(got)
			if want := []string{"data.a.b.arn", "local.roles", "var.region"}; !slices.Equal(got, want) {
				t.Errorf("a provider refers to %q, want %q", got, want)
			}
		})
	}
}

// Write-only arguments are found in dynamic blocks, of which the engine's JSON has
// nothing, at any depth; what other dynamic blocks refer to is in the plan.
func TestReferencesOfWriteOnlyArguments(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"main.tf": `resource "x" "y" {
  for_each = local.all
  name     = data.a.name.x
  dynamic "tag" {
    for_each = data.a.tags.list
    content { value = tag.value }
  }
  block {
    dynamic "user" {
      for_each = data.a.users.list
      content {
        inner { password_wo = "${each.value}${user.value.password}" }
      }
    }
  }
}`,
		"main.tf.json": `{"resource": {"x": {"y": {"for_each": "${local.all}", "name": "${data.a.name.x}",
			"dynamic": {"tag": {"for_each": "${data.a.tags.list}", "content": {"value": "${tag.value}"}}},
			"block": [{"dynamic": {"user": [{"for_each": "${data.a.users.list}", "content": {"inner": {"password_wo": "${each.value}${user.value.password}"}}}]}}]}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := ReadReferences(t.Context(), dir, Terraform)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range found.WriteOnly {
				got = append(got, strings.Join(r, "."))
			}
			slices.Sort(got)
			if want := []string{"data.a.users.list", "each.value", "local.all", "user.value.password"}; !slices.Equal(got, want) {
				t.Errorf("write-only arguments refer to %q, want %q", got, want)
			}
		})
	}
}
