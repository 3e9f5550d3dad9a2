package document_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

func TestChangedSettings(t *testing.T) {
	t.Parallel()
	office := holdfast.ApplyWindow{Kind: "allow", Schedule: "0 9 * * 1-5", Duration: 8 * time.Hour, TimeZone: "Europe/Berlin"}
	short := holdfast.ApplyWindow{Kind: "deny", Schedule: "0 0 * * *", Duration: 90*time.Minute + time.Second}
	none := func(*holdfast.Cluster) {}
	for name, c := range map[string]struct {
		before, after func(*holdfast.Cluster)
		want          []string
	}{
		"nothing": {none, none, nil},
		"what a plan shows, or a label": {none, func(c *holdfast.Cluster) {
			c.Variables, c.Labels, c.Path, c.Line = map[string]any{"a": 1}, map[string]string{"team": "x"}, "other.yaml", 7
		}, nil},
		"whose it is": {
			func(c *holdfast.Cluster) { c.Project, c.Environment = "shop", "production" },
			func(c *holdfast.Cluster) { c.Project, c.Environment = "lab", "playground" },
			[]string{"project: shop → lab", "environment: production → playground"},
		},
		"another order": {
			func(c *holdfast.Cluster) {
				c.DependsOn, c.Apply.Requires = []string{"a", "b"}, []string{"approved", "mergeable"}
			},
			func(c *holdfast.Cluster) {
				c.DependsOn, c.Apply.Requires = []string{"b", "a"}, []string{"mergeable", "approved"}
			},
			nil,
		},
		"what is said and what it means without": {none, func(c *holdfast.Cluster) { c.Drift.OnDrift = "report" }, nil},
		"conditions of an apply": {none, func(c *holdfast.Cluster) {
			c.Apply = holdfast.ApplySettings{Manual: true, Requires: []string{"approved"}, Windows: []holdfast.ApplyWindow{office, short}}
		}, []string{
			"apply.onMerge: true → false", "apply.requires: none → approved",
			`apply.windows: none → allow "0 9 * * 1-5" for 8h in Europe/Berlin, deny "0 0 * * *" for 1h30m1s in UTC`,
		}},
		"all others": {none, func(c *holdfast.Cluster) {
			c.Deletion.Protected, c.DependsOn = true, []string{"network"}
			c.Drift = holdfast.DriftSettings{Schedule: "off", OnDrift: "apply", Ignore: []holdfast.DriftRule{{Address: "a.b"}}}
			c.Template = &holdfast.TemplateRef{Name: "web", Version: "1.0.0", Upgrades: "~> 1.0"}
		}, []string{
			"deletion.protected: false → true", "dependsOn: none → network", "drift.schedule: as the server says → off",
			"drift.onDrift: report → apply", "template.upgrades: none → ~> 1.0", "drift.ignore: 1 added, 0 removed",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := holdfast.Cluster{Name: "prod"}, holdfast.Cluster{Name: "prod"}
			c.before(&before)
			c.after(&after)
			if diff := cmp.Diff(c.want, document.ChangedSettings(before, after)); diff != "" {
				t.Errorf("ChangedSettings() (-want +got):\n%s", diff)
			}
		})
	}
}
