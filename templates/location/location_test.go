package location_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates/location"
)

type config = map[string]any

// TestOf: equal configurations of a group are of the same state, and of two groups of two.
func TestOf(t *testing.T) {
	t.Parallel()
	pg := func(conn, schema string) config {
		c := config{"schema_name": schema}
		if conn != "" {
			c["conn_str"] = conn
		}
		return c
	}
	for kind, groups := range map[string][][]config{
		"http": {
			{{"address": "http://h/q?id=1"}, {"address": "http://u:secret@h/q?id=1"}},
			{{"address": "http://h/q?id=2"}},
			{{"address": "http://h/q"}, {"address": "http://h/q", "update_method": "PUT"}},
			{{"address": "http://h/%zz?id=1"}},
			{{"address": "http://h/%zz?id=2"}},
		},
		"pg": {
			{
				pg("postgres://u:secret@h/d", "one"), pg("postgresql://other@H:5432/d?sslmode=disable", "one"),
				pg("host=h dbname=d user=u password='it\\'s secret'", "one"), pg("dbname='d'  host = h port=5432", "one"),
			},
			{pg("postgres://u:secret@h/d", "two")},
			{pg("postgres://u:secret@h/e", "one")},
			{pg("postgres://u:secret@h:5433/d", "one"), pg("postgres:///d?host=h&port=5433", "one")},
			{pg("postgres://u:secret@h/d", "terraform_remote_state"), {"conn_str": "postgres://u:secret@h/d", "table_name": "states"}},
			{{"conn_str": "postgres://u:secret@h/d", "table_name": "others"}},
			{pg("", "one")},
			{pg("", "two")},
			{pg("host='h", "one")},
			{pg("host='i", "one")},
		},
		"gcs": {
			{{"bucket": "b"}, {"bucket": "b", "prefix": ""}},
			{{"bucket": "b", "prefix": "p"}, {"bucket": "b", "prefix": "p/"}},
			{{"bucket": "c"}},
		},
		"s3": {
			{{"bucket": "b", "key": "k"}, {"bucket": "b", "key": "k", "region": "r", "workspace_key_prefix": "w"}},
			{
				{"bucket": "b", "key": "k", "endpoint": "https://store/"},
				{"bucket": "b", "key": "k", "endpoints": config{"s3": "https://store"}},
				{"bucket": "b", "key": "k", "endpoints.s3": "https://store"},
			},
			{{"bucket": "b", "key": "l"}},
		},
		"kubernetes": {
			{{"secret_suffix": "s"}, {"secret_suffix": "s", "namespace": "default"}},
			{{"secret_suffix": "s", "namespace": "n"}},
			{{"secret_suffix": "s", "config_context": "eu"}},
			{{"secret_suffix": "s", "config_context_cluster": "eu"}},
			{{"secret_suffix": "s", "in_cluster_config": true}},
			{{"secret_suffix": "s", "host": "https://h"}, {"secret_suffix": "s", "host": "https://u:secret@h"}},
		},
		"azurerm": {
			{{"storage_account_name": "a", "container_name": "c", "key": "k"}, {"storage_account_name": "a", "container_name": "c", "key": "k", "environment": "public"}},
			{{"storage_account_name": "a", "container_name": "c", "key": "k", "environment": "china"}},
		},
		"oss": {
			{{"bucket": "b"}, {"bucket": "b", "key": "terraform.tfstate", "prefix": "env:"}},
			{{"bucket": "b", "prefix": "p"}},
			{{"bucket": "b", "key": "k"}},
		},
		"cos": {
			{{"bucket": "b"}, {"bucket": "b", "key": "terraform.tfstate", "prefix": ""}},
			{{"bucket": "b", "prefix": "p"}},
			{{"bucket": "b", "region": "r"}},
		},
		"consul": {{{"path": "p"}}, {{"path": "p", "address": "h:8500"}}, {{"path": "p", "datacenter": "d"}}},
		"local":  {{{"path": "/a"}}, {{"path": "/b"}}, {{"path": "/a\u200b"}}, {{"path": "/a\u202e"}}, {{"path": "/a\x1b[31m"}}},
		"remote": {
			{{"organization": "o", "workspaces.name": "w"}, {"organization": "o", "workspaces.name": "w", "hostname": "app.terraform.io"}},
			{{"organization": "o", "workspaces.name": "w", "hostname": "tfe"}},
			{{"organization": "o", "workspaces.prefix": "w"}},
			{{"organization": "o", "workspaces.prefix": "x"}},
		},
		"inmem": {{{}, {"lock_id": "l"}}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			groupOf := map[string]int{}
			for i, group := range groups {
				name := location.Of(location.Backend{Kind: kind, Config: group[0], Home: "infra/a", Scope: "p/e"})
				if other, taken := groupOf[name]; taken {
					t.Errorf("%v and %v are %s", groups[other][0], group[0], name)
				}
				groupOf[name] = i
				for _, c := range group {
					if got := location.Of(location.Backend{Kind: kind, Config: c, Home: "infra/a", Scope: "p/e"}); got != name {
						t.Errorf("%v is %s, and %v is %s", group[0], name, c, got)
					}
				}
				if !strings.HasPrefix(name, kind+":") || strings.Contains(name, "secret=") || strings.Contains(name, "u:secret") || strings.Contains(name, "id=") ||
					strings.ContainsAny(name, "\u200b\u202e\x1b") {
					t.Errorf("%v is %s", group[0], name)
				}
			}
		})
	}
}

// TestFolders: the folder of the code is nothing to a state that the arguments name, and
// all there is to one that they do not.
func TestFolders(t *testing.T) {
	t.Parallel()
	of := func(kind, home, scope string, c config, unread map[string]string) string {
		return location.Of(location.Backend{Kind: kind, Config: c, Unread: unread, Home: home, Scope: scope})
	}
	schema := config{"schema_name": "s"}
	if a, b := of("pg", "infra/a", "p/e", schema, nil), of("pg", "infra/b", "p/e", schema, nil); a != b {
		t.Errorf("with one environment the same schema is %s and %s", a, b)
	}
	if a, b := of("pg", "infra/a", "p/e", schema, nil), of("pg", "infra/a", "p/f", schema, nil); a == b {
		t.Errorf("with two environments the same schema is %s", a)
	}
	expression := func(text string) map[string]string { return map[string]string{"key": text} }
	bucket := config{"bucket": "b"}
	if a, b := of("s3", "infra/a", "", bucket, expression("var.k")), of("s3", "infra/b", "", bucket, expression("var.k")); a == b {
		t.Errorf("what cannot be read is %s in two folders", a)
	}
	if a, b := of("s3", "infra/a", "", bucket, expression("var.k")), of("s3", "infra/a", "", bucket, expression("var.l")); a == b {
		t.Errorf("two expressions are %s", a)
	}
	if a, b := of("s3", "infra/a", "", bucket, expression("var.k")), of("s3", "infra/a", "", bucket, expression("var.k")); a != b {
		t.Errorf("one expression is %s and %s", a, b)
	}
	address := map[string]string{"address": `"http://u:secret@${var.h}/x"`}
	if name := of("http", "infra/a", "", nil, address); strings.Contains(name, "secret") {
		t.Errorf("an expression with a password is %s", name)
	}
	host := map[string]string{"host": `"https://u:secret@${var.h}"`}
	if name := of("kubernetes", "infra/a", "", config{"secret_suffix": "s"}, host); strings.Contains(name, "secret@") {
		t.Errorf("a host with a password is %s", name)
	}
}
