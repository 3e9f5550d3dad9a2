package templates_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/templates"
)

const moduleCluster = `apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: own}
spec:
  project: p
  environment: e
  module: {path: infra/own}
`

func moduleFiles() map[string]string {
	return map[string]string{
		"infra/own/main.tf": `variable "size" {
  type = number
}
variable "zones" {
  type = list(string)
}
module "a" {
  source = "../../modules/a"
}
module "far" {
  source  = "terraform-aws-modules/vpc/aws"
  version = "~> 5.0"
}
`,
		"infra/own/extra.tf.json":              `{"module": {"b": {"source": "./b"}}, "variable": {"note": {}}}`,
		"infra/own/cluster.yaml":               moduleCluster,
		"infra/own/values.yaml":                "image: nginx",
		"infra/own/.terraform.lock.hcl":        "# lock",
		"infra/own/.terraform/x":               "x",
		"infra/own/terraform.tfstate":          "{}",
		"infra/own/terraform.tfstate.1.backup": "{}",
		"infra/own/b/main.tf":                  "",
		"infra/own/common.tf":                  "-> ../common.tf",
		"infra/common.tf":                      `module "c" { source = "../../modules/c" }`,
		"infra/own/data":                       "-> ../../data",
		"data/x/y.json":                        "{}",
		"modules/a/main.tf":                    `module "deep" { source = "../deep" }`,
		"modules/c/main.tf":                    "",
		"modules/deep/main.tf":                 "",
		"modules/other/main.tf":                "",
	}
}

func TestResolveModule(t *testing.T) {
	t.Parallel()

	doc := clusterOf(t, "infra/own/cluster.yaml", moduleCluster+"  variables: {size: 3, zones: [a], note: \"${x}\"}\n")
	root := resolve(t, tree(moduleFiles()), doc)
	if root.Dir != "infra/own" || !root.OwnState || root.StateLocation != "clusters/own" || root.Template != "" {
		t.Errorf("root %q, own %v, state %q, template %q", root.Dir, root.OwnState, root.StateLocation, root.Template)
	}
	want := map[string]string{
		"infra/own/holdfast_backend.tf":       "# Made by Holdfast from the cluster's document: a change here is lost.\n\nterraform {\n  backend \"http\" {\n  }\n}\n",
		"infra/own/holdfast.auto.tfvars.json": "{\n  \"note\": \"${x}\",\n  \"size\": 3,\n  \"zones\": [\n    \"a\"\n  ]\n}\n",
		"infra/own/common.tf":                 moduleFiles()["infra/common.tf"],
		"infra/own/data/x/y.json":             "{}",
	}
	for _, name := range []string{
		"infra/own/main.tf", "infra/own/extra.tf.json", "infra/own/values.yaml", "infra/own/.terraform.lock.hcl",
		"infra/own/b/main.tf", "modules/a/main.tf", "modules/c/main.tf", "modules/deep/main.tf",
	} {
		want[name] = moduleFiles()[name]
	}
	if diff := cmp.Diff(want, contents(t, root)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"data", "infra/common.tf", "infra/own", "infra/own/b", "modules/a", "modules/c", "modules/deep"}, root.Reads); diff != "" {
		t.Error(diff)
	}
}

func TestModuleDigest(t *testing.T) {
	t.Parallel()

	doc := clusterOf(t, "infra/own/cluster.yaml", moduleCluster)
	base := resolve(t, tree(moduleFiles()), doc).Digest
	for name, same := range map[string]bool{
		"infra/own/cluster.yaml":        true, // its document says what matters
		"modules/other/main.tf":         true,
		"infra/own/terraform.tfstate":   true,
		"infra/own/main.tf":             false,
		"infra/own/values.yaml":         false,
		"infra/own/.terraform.lock.hcl": false,
		"infra/common.tf":               false,
		"data/x/y.json":                 false,
		"modules/deep/main.tf":          false,
	} {
		changed := with(moduleFiles(), name, moduleFiles()[name]+"\n")
		if got := resolve(t, tree(changed), doc).Digest.Equal(base); got != same {
			t.Errorf("with another %s the digest is equal: %v", name, got)
		}
	}
}

func TestModuleFaults(t *testing.T) {
	t.Parallel()

	const file = "infra/own/main.tf"
	tests := map[string]struct {
		spec  string
		files []string
		want  []string
	}{
		"no such folder": {
			spec: "module: {path: infra/onw}",
			want: []string{`c.yaml:7:18: spec.module.path: there is no folder infra/onw (the path starts from the root of the repository)`},
		},
		"a file": {
			spec: "module: {path: infra/own/main.tf}",
			want: []string{`c.yaml:7:18: spec.module.path: there is no folder infra/own/main.tf (the path starts from the root of the repository)`},
		},
		"no code": {
			spec: "module: {path: data}",
			want: []string{`c.yaml:7:18: spec.module.path: folder data has no .tf file`},
		},
		"variables": {
			spec: "variables: {sise: 1, size: big, zones: x, note: [1]}",
			want: []string{
				`c.yaml:8:15: module infra/own declares no variable "sise" (did you mean "size"?)`,
				`c.yaml:8:30: variable size must be a number (as infra/own declares it)`,
				`c.yaml:8:42: variable zones must be a list (as infra/own declares it)`,
			},
		},
		"variables inside": {
			spec:  "variables: {size: \"3\", zones: [a, [b]], more: {name: \"${x}\", ports: [80, http]}}",
			files: []string{"infra/own/more.tf", "variable \"more\" {\n  type = object({ name = string, ports = list(number), note = optional(string) })\n}\n"},
			want: []string{
				`c.yaml:8:33: variable zones[] must be string, and this is a list (as infra/own declares it)`,
				`c.yaml:8:49: variable more.ports[] must be number, and this is "http" (as infra/own declares it)`,
			},
		},
		"source that leaves": {
			files: []string{file, "module \"x\" {\n  source = \"../../../x\"\n}\n"},
			want:  []string{`infra/own/main.tf:2:12: module "x" has the source "../../../x", which leaves the repository`},
		},
		"source that is not there": {
			files: []string{"modules/a/main.tf", "module \"x\" {\n  source = \"./x\"\n}\n"},
			want:  []string{`modules/a/main.tf:2:12: module "x" has the source "./x", and there is no folder modules/a/x`},
		},
		"link that leaves": {
			files: []string{"infra/own/b/passwd", "-> ../../../../etc/passwd"},
			want:  []string{`infra/own/b/passwd: symbolic link to "../../../../etc/passwd" leaves the repository (copy what it points to)`},
		},
		"absolute link": {
			files: []string{"modules/a/passwd", "-> /etc/passwd"},
			want:  []string{`modules/a/passwd: symbolic link to "/etc/passwd" leaves the repository (copy what it points to)`},
		},
		"dangling link": {
			files: []string{"modules/a/x", "-> y"},
			want:  []string{`modules/a/x: symbolic link to "y" leads nowhere`},
		},
		"links in a circle": {
			files: []string{"modules/a/x", "-> y", "modules/a/y", "-> x"},
			want: []string{
				`modules/a/x: symbolic link leads in a circle`,
				`modules/a/y: symbolic link leads in a circle`,
			},
		},
		"link to its own folder": {
			files: []string{"modules/a/x", "-> ../a"},
			want:  []string{`modules/a/x: symbolic link to a folder that contains it`},
		},
		"broken code": {
			files: []string{file, "variable \"x\" {\n"},
			want:  []string{`infra/own/main.tf:1:14: Unclosed configuration block (There is no closing brace for this block before the end of the file. This may be caused by incorrect brace nesting elsewhere in this file.)`},
		},
		"two backends": {
			spec:  "state: {type: s3, bucket: b}",
			files: []string{file, "terraform {\n  backend \"s3\" {}\n}\n"},
			want:  []string{`c.yaml:8:3: spec.state in addition to the backend "s3" in infra/own/main.tf:2 (remove one of them)`},
		},
		"a backend and a cloud": {
			files: []string{"infra/own/a.tf", "terraform {\n  backend \"s3\" {}\n}\n", "infra/own/b.tf", "terraform {\n  cloud {}\n}\n"},
			want:  []string{`infra/own/b.tf:2: the cloud block is in addition to the backend "s3" in infra/own/a.tf:2 (remove one of them)`},
		},
		"state store": {
			files: []string{"infra/own/a_override.tf", "terraform {\n  state_store \"x_y\" {}\n}\n"},
			want:  []string{`infra/own/a_override.tf:2: a state_store block is not supported (use a backend, or none: the state is kept by Holdfast then)`},
		},
		"local backend in an override": {
			files: []string{"infra/own/a_override.tf", "terraform {\n  backend \"local\" {}\n}\n"},
			want:  []string{`infra/own/a_override.tf:2: a local backend keeps the state in a workspace that is thrown away (remove the block: the state is kept by Holdfast then; or use another backend)`},
		},
		"local backend": {
			files: []string{file, "terraform {\n  backend \"local\" {}\n}\n"},
			want:  []string{`infra/own/main.tf:2: a local backend keeps the state in a workspace that is thrown away (remove the block: the state is kept by Holdfast then; or use another backend)`},
		},
		"LFS pointer": {
			files: []string{"infra/own/b/blob", "LFS"},
			want:  []string{`infra/own/b/blob: file is a Git LFS pointer`},
		},
		"large file": {
			files: []string{"infra/own/b/blob", strings.Repeat("x", 11<<20)},
			want:  []string{`infra/own/b/blob: file has 11534336 bytes, more than the 10485760 of a file in a module (keep it elsewhere)`},
		},
		"our file's name": {
			files: []string{"infra/own/holdfast_backend.tf", ""},
			want:  []string{`infra/own/holdfast_backend.tf: a file of this name is written by Holdfast (rename it)`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := moduleCluster
			if strings.HasPrefix(tc.spec, "module:") {
				text = strings.Replace(text, "module: {path: infra/own}", tc.spec, 1)
			} else if tc.spec != "" {
				text += "  " + tc.spec + "\n"
			}
			faults := resolveFaults(t, tree(with(moduleFiles(), tc.files...)), clusterOf(t, "c.yaml", text))
			wantFaults(t, faults, tc.want...)
		})
	}
}

func TestStateLocation(t *testing.T) {
	t.Parallel()

	code := func(block string) []string {
		return []string{"infra/own/backend.tf", "terraform {\n" + block + "\n}\n"}
	}
	gcs := func(bucket string) string {
		return fmt.Sprintf("terraform {\n  backend \"gcs\" {\n    bucket = %q\n    prefix = \"p\"\n  }\n}\n", bucket)
	}
	tests := map[string]struct {
		spec  string
		files []string
		want  string
		own   bool
		file  string // what Holdfast writes
	}{
		"none":                  {want: "clusters/own", own: true, file: "backend \"http\" {\n  }"},
		"spec, default key":     {spec: "state: {type: s3, bucket: b, region: r}", want: "s3:bucket=b,key=own/terraform.tfstate", file: "key    = \"own/terraform.tfstate\""},
		"spec, own key":         {spec: "state: {type: s3, bucket: b, key: k}", want: "s3:bucket=b,key=k", file: `key    = "k"`},
		"spec, gcs":             {spec: "state: {type: gcs, bucket: b}", want: "gcs:bucket=b,prefix=own", file: `prefix = "own"`},
		"spec, azurerm":         {spec: "state: {type: azurerm, storage_account_name: s, container_name: c}", want: "azurerm:storage_account_name=s,container_name=c,key=own.tfstate", file: `"own.tfstate"`},
		"spec, kubernetes":      {spec: "state: {type: kubernetes, namespace: n}", want: "kubernetes:secret_suffix=own,namespace=n", file: `secret_suffix = "own"`},
		"spec, a kubeconfig":    {spec: "state: {type: kubernetes, config_path: /etc/k/eu, config_context: c}", want: "kubernetes:secret_suffix=own,config_path=/etc/k/eu,config_context=c", file: `secret_suffix  = "own"`},
		"spec, http":            {spec: "state: {type: http, address: \"https://u:p@h.invalid/x?token=1\"}", want: "http:address=https://h.invalid/x,query=c22fb5df16bb2643", file: `"https://u:p@h.invalid/x?token=1"`},
		"spec, nested argument": {spec: "state: {type: s3, bucket: b, endpoints: {s3: \"http://${x}\"}}", want: "s3:bucket=b,key=own/terraform.tfstate,endpoint=unreadable 6076bb27ab115870", file: `"s3" = "http://$${x}"`},
		"code, same as spec":    {files: code(`backend "s3" {` + "\nbucket = \"b\"\nkey = \"k\"\nregion = \"r\"\nsecret_key = \"x\"\n}"), want: "s3:bucket=b,key=k"},
		"spec, another store":   {spec: "state: {type: s3, bucket: b, key: k, endpoints: {s3: \"https://u:p@minio.invalid:9000/\"}}", want: "s3:bucket=b,key=k,endpoint=https://minio.invalid:9000", file: `key = "k"`},
		"code, another store":   {files: code(`backend "s3" {` + "\nbucket = \"b\"\nkey = \"k\"\nendpoints = {\ns3 = \"https://minio.invalid:9000\"\n}\n}"), want: "s3:bucket=b,key=k,endpoint=https://minio.invalid:9000"},
		"code, endpoint":        {files: code(`backend "s3" {` + "\nbucket = \"b\"\nkey = \"k\"\nendpoint = \"https://minio.invalid:9000\"\n}"), want: "s3:bucket=b,key=k,endpoint=https://minio.invalid:9000"},
		"code, from elsewhere":  {files: code(`backend "s3" {` + "\nbucket = \"b\"\n}"), want: "s3:infra/own,bucket=b"},
		"code, expression":      {files: code(`backend "s3" {` + "\nbucket = \"b\"\nkey = var.size\n}"), want: "s3:infra/own,bucket=b,key=var.size"},
		"code, unknown kind":    {files: code("backend \"inmem\" {\n}"), want: "inmem:infra/own"},
		"code, pg":              {files: code(`backend "pg" {` + "\nconn_str = \"postgres://u:p@h/d\"\n}"), want: "pg:conn_str=h:5432/d,schema_name=terraform_remote_state"},
		"code, a boolean":       {files: code(`backend "kubernetes" {` + "\nsecret_suffix = \"s\"\nin_cluster_config = true\n}"), want: "kubernetes:secret_suffix=s,in_cluster_config=true"},
		"code, a secret":        {files: code(`backend "http" {` + "\naddress = \"https://u:p@${var.size}/x\"\n}"), want: "http:infra/own,address=expression c97fdd190a14d530"},
		"code, cloud":           {files: code("cloud {\norganization = \"o\"\nworkspaces {\nname = \"w\"\n}\n}"), want: "cloud:organization=o,workspaces.name=w"},
		"code, overridden":      {files: append(code(`backend "s3" {`+"\nbucket = \"b\"\nkey = \"k\"\n}"), "infra/own/a_override.tf", gcs("other")), want: "gcs:bucket=other,prefix=p"},
		"code, override.tf":     {files: append(code(`backend "s3" {`+"\nbucket = \"b\"\nkey = \"k\"\n}"), "infra/own/override.tf", gcs("other")), want: "gcs:bucket=other,prefix=p"},
		"code, override, JSON":  {files: append(code(`backend "s3" {`+"\nbucket = \"b\"\nkey = \"k\"\n}"), "infra/own/override.tf.json", `{"terraform": {"backend": {"gcs": {"bucket": "other", "prefix": "p"}}}}`), want: "gcs:bucket=other,prefix=p"},
		"code, two overrides":   {files: []string{"infra/own/a_override.tf", gcs("a"), "infra/own/b_override.tf", gcs("b"), "infra/own/zz.tf", gcs("z")}, want: "gcs:bucket=b,prefix=p"},
		"code, only overridden": {files: []string{"infra/own/a_override.tf", gcs("a")}, want: "gcs:bucket=a,prefix=p"},
		"code, cloud override":  {files: []string{"infra/own/zz.tf", gcs("z"), "infra/own/a_override.tf", "terraform {\ncloud {\norganization = \"o\"\nworkspaces {\nname = \"w\"\n}\n}\n}\n"}, want: "cloud:organization=o,workspaces.name=w"},
		"code, two blocks":      {files: []string{"infra/own/zz.tf", "terraform {\n}\n" + gcs("z") + "terraform {\nrequired_version = \">= 1\"\n}\n"}, want: "gcs:bucket=z,prefix=p"},
		"code, tofu":            {files: []string{"infra/own/b.tf", gcs("tf"), "infra/own/b.tofu", gcs("tofu")}, want: "gcs:bucket=tofu,prefix=p"},
		"code, tofu, override":  {files: []string{"infra/own/b_override.tf", gcs("tf"), "infra/own/b_override.tofu", gcs("tofu"), "infra/own/c.tf", gcs("c")}, want: "gcs:bucket=tofu,prefix=p"},
		"code, terraform":       {spec: "engine: {name: terraform}", files: []string{"infra/own/b.tf", gcs("tf"), "infra/own/a.tofu", gcs("tofu"), "infra/own/a_override.tofu", gcs("over")}, want: "gcs:bucket=tf,prefix=p"},
		"code, JSON":            {files: []string{"infra/own/b.tf.json", `{"terraform": {"backend": {"gcs": {"bucket": "b", "prefix": "p"}}}}`}, want: "gcs:bucket=b,prefix=p"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := moduleCluster
			if tc.spec != "" {
				text += "  " + tc.spec + "\n"
			}
			root := resolve(t, tree(with(moduleFiles(), tc.files...)), clusterOf(t, "c.yaml", text))
			if root.StateLocation != tc.want || root.OwnState != tc.own {
				t.Errorf("state is %q, own %v, want %q, %v", root.StateLocation, root.OwnState, tc.want, tc.own)
			}
			var written string
			for _, f := range root.Files() {
				written += string(f.Data)
			}
			if !strings.Contains(written, tc.file) || (tc.file == "") != (written == "") {
				t.Errorf("Holdfast writes\n%s\nwant %s", written, tc.file)
			}
		})
	}
}

func TestModuleReadsFilesElsewhere(t *testing.T) {
	t.Parallel()

	files := with(moduleFiles(),
		"infra/own/reads.tf", `locals {
  a = yamldecode(file("${path.module}/../../global.yaml"))
  b = templatefile("../b.tpl", { x = file("../missing") })
  c = fileset("${path.module}/../../policies", "*.json")
  d = file(var.size)
  e = file("../../../../etc/passwd")
}
`,
		"modules/a/reads.tf", "locals {\n  a = file(\"${path.module}/../near.txt\")\n  b = file(\"../from-root.txt\")\n}\n",
		"global.yaml", "x: 1", "infra/b.tpl", "b", "policies/one.json", "{}", "modules/near.txt", "near", "infra/from-root.txt", "r",
	)
	doc := clusterOf(t, "c.yaml", moduleCluster)
	root := resolve(t, tree(files), doc)
	got := contents(t, root)
	for _, name := range []string{"global.yaml", "infra/b.tpl", "policies/one.json", "modules/near.txt", "infra/from-root.txt"} {
		if got[name] != files[name] {
			t.Errorf("%s is not in the bundle", name)
		}
		if resolve(t, tree(with(files, name, "other")), doc).Digest.Equal(root.Digest) {
			t.Errorf("another %s makes no difference", name)
		}
		if dir, _, _ := strings.Cut(name, "/one.json"); !slices.Contains(root.Reads, dir) {
			t.Errorf("%s is not among the reads %v", dir, root.Reads)
		}
	}
	if !slices.Contains(root.Reads, "infra/missing") {
		t.Errorf("what is missing is not among the reads %v", root.Reads)
	}
}

// TestSourceThatDependsOnValues: the bundle has every folder that OpenTofu can
// make of a module's source.
func TestSourceThatDependsOnValues(t *testing.T) {
	t.Parallel()

	files := with(moduleFiles(),
		"infra/own/flavour.tf", "module \"m\" { source = \"../../mods/mod-${var.size}\" }\nmodule \"n\" { source = \"../../kinds/${var.size}/eu-${local.x}\" }\nmodule \"o\" { source = var.size }\n",
		"infra/own/more.tofu.json", `{"module": {"p": {"source": "../../json/${var.size}"}, "q": {"source": "${local.dir}"}, "r": {"source": "${local.loop}"}}}`,
		"infra/own/locals.tf", "locals {\n  base = \"../../locals\"\n  dir = \"${local.base}/${var.size.x}-${path.module}\"\n  loop = \"../../${local.loop}/x\"\n}\n",
		"json/a/main.tf", "locals {}\n", "locals/a-./main.tf", "locals {}\n", "locals/b/main.tf", "locals {}\n", "mods/x/main.tf", "locals {}\n",
		"mods/mod-a/main.tf", "module \"d\" { source = \"../deep\" }\n", "mods/mod-b/main.tf", "locals {}\n", "mods/other/main.tf", "locals {}\n",
		"mods/deep/main.tf", "locals {}\n", "kinds/one/eu-1/main.tf", "locals {}\n", "kinds/two/us-1/main.tf", "locals {}\n",
	)
	doc := clusterOf(t, "c.yaml", moduleCluster)
	root := resolve(t, tree(files), doc)
	got := contents(t, root)
	for name, want := range map[string]bool{
		"mods/mod-a/main.tf": true, "mods/mod-b/main.tf": true, "mods/deep/main.tf": true, "kinds/one/eu-1/main.tf": true,
		"json/a/main.tf": true, "locals/a-./main.tf": true,
		"mods/other/main.tf": false, "kinds/two/us-1/main.tf": false, "locals/b/main.tf": false,
	} {
		if _, have := got[name]; have != want {
			t.Errorf("%s is in the bundle: %v, want %v", name, have, want)
		}
		if same := resolve(t, tree(with(files, name, "# another")), doc).Digest.Equal(root.Digest); same == want {
			t.Errorf("with another %s the digest is the same: %v", name, same)
		}
	}
	if resolve(t, tree(with(files, "mods/mod-c/main.tf", "locals {}")), doc).Digest.Equal(root.Digest) {
		t.Error("one more folder that it can mean makes no difference")
	}
	if !slices.Contains(root.Reads, "mods") {
		t.Errorf("where it looks is not among the reads %v", root.Reads)
	}
}

// TestSourceThatIsMade: conditions, format and parts of locals in a source lead to every
// folder that it can be.
func TestSourceThatIsMade(t *testing.T) {
	t.Parallel()
	folders := []string{"m/ha", "m/small", "mod-a", "mod-b", "other"}
	for source, want := range map[string]string{
		`var.ha ? "../../m/ha" : "../../m/small"`:                        "m/ha m/small",
		`"../../${var.ha ? "mod-a" : (var.size ? "other" : "m/small")}"`: "m/small mod-a other",
		`"../../%{ if var.ha }mod-a%{ else }other%{ endif }"`:            "mod-a other",
		`var.size == "x" ? "../../m/ha" : "../../m/small"`:               "m/ha m/small",
		`"../../mod-${lower(var.size)}"`:                                 "mod-a mod-b",
		`format("../../mod-%s", var.size)`:                               "mod-a mod-b",
		`format("../../%s-%d", var.ha ? "mod" : "x", var.size)`:          "mod-a mod-b",
		`format("../../mod-a%q", var.size)`:                              "",
		`format("../../mod-%s")`:                                         "",
		`"${path.module}/../../other"`:                                   "other",
		`local.dirs[var.size]`:                                           "m/ha other",
		`local.dirs.a`:                                                   "m/ha",
		`local.dirs["b-c"]`:                                              "other",
		`local.dirs.gone`:                                                "",
		`local.list[var.size]`:                                           "m/small mod-b",
		`"${local.base[var.size].x}mod-a"`:                               "",
		`var.from`:                                                       "",
		`var.ha ? "../../m/ha" : "git::https://h/m?ref=v1"`:              "m/ha",
		`var.ha ? "../../m/ha" : var.from`:                               "m/ha",
		`format("git::https://h/m?ref=%s", var.size)`:                    "",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			files := with(moduleFiles(),
				"infra/own/made.tofu", "module \"made\" {\n  source = "+source+"\n}\n",
				"infra/own/locals.tf", "locals {\n  dirs = { a = \"../../m/ha\", \"b-c\" = \"../../other\" }\n  list = [\"../../m/small\", \"../../mod-b\"]\n}\n",
			)
			for _, dir := range folders {
				files[dir+"/main.tf"] = "locals {}\n"
			}
			bundle := contents(t, resolve(t, tree(files), clusterOf(t, "c.yaml", moduleCluster)))
			var got []string
			for _, dir := range folders {
				if _, have := bundle[dir+"/main.tf"]; have {
					got = append(got, dir)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("the bundle has %v, and not %s", got, want)
			}
		})
	}
}

// TestCodeOfTheEngine: what a module says is what the files say that the cluster's engine
// reads.
func TestCodeOfTheEngine(t *testing.T) {
	t.Parallel()
	number, list := "variable \"n\" {\n  type = number\n}\n", "variable \"n\" {\n  type = list(number)\n}\n"
	both := with(moduleFiles(), "infra/own/n.tf", number, "infra/own/n.tofu", list)
	broken := "module \"gone\" {\n  source = \"../gone\"\n}\n"
	const secret = "variables: {n: {secret: {env: N}}}"
	sensitive := "variable \"n\" {\n  sensitive = true\n}\n"
	for name, c := range map[string]struct {
		files        map[string]string
		engine, spec string
		want         string
	}{
		"Terraform":                    {both, "terraform", "variables: {n: 3}", ""},
		"Terraform, a list":            {both, "terraform", "variables: {n: [3]}", "must be a number"},
		"OpenTofu":                     {both, "tofu", "variables: {n: [3]}", ""},
		"OpenTofu, a number":           {both, "tofu", "variables: {n: 3}", "must be a list"},
		"not named: as OpenTofu":       {both, "", "variables: {n: [3]}", ""},
		"not named, a number":          {both, "", "variables: {n: 3}", "must be a list"},
		"only OpenTofu's":              {with(moduleFiles(), "infra/own/x.tofu", number), "terraform", "variables: {n: 3}", `declares no variable "n"`},
		"only in what it replaces":     {with(moduleFiles(), "infra/own/n.tf", number, "infra/own/n.tofu", "locals {}\n"), "tofu", "variables: {n: 3}", `declares no variable "n"`},
		"an error of OpenTofu's":       {with(moduleFiles(), "infra/own/x.tofu", "{"), "terraform", "", ""},
		"an error":                     {with(moduleFiles(), "infra/own/x.tofu", "{"), "tofu", "", "x.tofu:1"},
		"an error in what it replaces": {with(moduleFiles(), "infra/own/x.tf", "{", "infra/own/x.tofu", "locals {}\n"), "tofu", "", ""},
		"a folder that OpenTofu needs": {with(moduleFiles(), "infra/own/x.tofu", broken), "terraform", "", ""},
		"a folder that is needed":      {with(moduleFiles(), "infra/own/x.tofu", broken), "tofu", "", "there is no folder infra/gone"},
		"secret to OpenTofu only":      {with(moduleFiles(), "infra/own/n.tf", "variable \"n\" {}\n", "infra/own/n.tofu", sensitive), "terraform", secret, "sensitive"},
		"secret to it":                 {with(moduleFiles(), "infra/own/n.tf", "variable \"n\" {}\n", "infra/own/n.tofu", sensitive), "tofu", secret, ""},
		"no code":                      {map[string]string{"infra/own/x.tofu": "locals {}\n"}, "terraform", "", "has no .tf file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := moduleCluster
			if c.engine != "" {
				text += "  engine: {name: " + c.engine + "}\n"
			}
			if c.spec != "" {
				text += "  " + c.spec + "\n"
			}
			doc := clusterOf(t, "c.yaml", text)
			if c.want == "" {
				resolve(t, tree(c.files), doc)
			} else if faults := resolveFaults(t, tree(c.files), doc); !strings.Contains(faults.Error(), c.want) {
				t.Errorf("%v, and nothing of %q", faults, c.want)
			}
		})
	}
}

// TestSourcesTakeBoundedWork: what a source can be is found in bounded time and depth,
// however it multiplies or refers to itself; and other sources do not lose by it.
func TestSourcesTakeBoundedWork(t *testing.T) {
	t.Parallel()
	chain := "locals {\n  l0 = \"x\"\n"
	for i := range 5_000 {
		chain += fmt.Sprintf("  l%d = \"${local.l%d}\"\n", i+1, i)
	}
	large, err := json.Marshal("${local.x}" + strings.Repeat("y${var.a}", 10_000))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ source, more string }{
		"conditions":       {`"../../${` + strings.Repeat(`var.a ? "x" : "y"}${`, 30) + `var.a}"`, ""},
		"nested":           {strings.Repeat(`(var.a ? "x" : `, 30) + `"y"` + strings.Repeat(")", 30), ""},
		"a local in steps": {"local.l5000", chain + "}\n"},
		"in itself":        {"local.o[var.a]", "locals {\n  o = { a = local.o[var.a], b = local.o[var.a], c = local.o.c, (var.a) = local.o.a }\n}\n"},
		"doubling":         {"local.d[var.a]", "locals {\n  d = [\"${local.d[0]}${local.d[var.a]}\", \"${local.d[var.a]}${local.d[var.a]}\"]\n}\n"},
		"a large text":     {"local.x.a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := with(moduleFiles(),
				"infra/own/a.tf", "module \"kept\" {\n  source = \"../../mod-${var.a}\"\n}\n", "mod-a/main.tf", "locals {}\n",
				"infra/own/locals.tf", c.more, "infra/own/x.tf.json", `{"locals": {"x": `+string(large)+`}}`,
			)
			var made strings.Builder
			for i := range 300 {
				fmt.Fprintf(&made, "module \"made%d\" {\n  source = %s\n}\n", i, c.source)
			}
			files["infra/own/made.tf"] = made.String()
			bundle := contents(t, resolve(t, tree(files), clusterOf(t, "c.yaml", moduleCluster)))
			if _, have := bundle["mod-a/main.tf"]; !have {
				t.Error("the folder of the first source is not in the bundle")
			}
		})
	}
}

func TestCodeThatWouldOverflowTheStack(t *testing.T) {
	t.Parallel()

	for _, piece := range []string{"(", "[", "{", "a {\n", "!", "- ", "-(", "a ? a : ", "\"${", "a(", "[for a in "} {
		for _, name := range []string{"infra/own/main.tf", "infra/own/x.tf.json"} {
			code := "locals {\n  a = " + strings.Repeat(piece, min(1<<17, 1<<20/len(piece))) // the parser overflows at 1<<16
			faults := resolveFaults(t, tree(with(moduleFiles(), name, code)), clusterOf(t, "c.yaml", moduleCluster))
			native := strings.HasSuffix(name, ".tf") // the other is not JSON
			if len(faults) == 0 || native && !strings.Contains(faults.Error(), "expressions are nested deeper than 1,000 levels") {
				t.Errorf("%q gives %.200v", piece, faults)
			}
		}
	}
	// As deep as it may be, the parser still answers.
	for _, piece := range []string{"(", "[", "{", "!", "- ", "a ? a : ", "\"${", "a(", "[for a in "} {
		code := "locals {\n  a = " + strings.Repeat(piece, 400)
		resolveFaults(t, tree(with(moduleFiles(), "infra/own/main.tf", code)), clusterOf(t, "c.yaml", moduleCluster))
	}
}

// Chains of operators are nested without brackets, and nested loops never end.
func TestCodeThatWouldNotEnd(t *testing.T) {
	t.Parallel()

	for _, piece := range []string{"+1", "-1", " && true", "[*]", "[0]"} {
		code := "locals {\n  a = 1" + strings.Repeat(piece, 900_000/len(piece)) + "\n}\n"
		faults := resolveFaults(t, tree(with(moduleFiles(), "infra/own/main.tf", code)), clusterOf(t, "c.yaml", moduleCluster))
		// One that is not nested is not a fault.
		if nested := piece != "[0]"; nested != strings.Contains(faults.Error(), "main.tf:2: expressions are nested deeper than 1,000 levels") {
			t.Errorf("%q gives %.200v", piece, faults)
		}
	}
	loop := "1"
	for range 12 {
		loop = "[for a in [" + strings.Repeat("1, ", 100) + "] : " + loop + "]"
	}
	for _, code := range []string{
		"variable \"nodes\" {\n  sensitive = %s\n}\n", "variable \"nodes\" {\n  nullable = %s\n}\n", "variable \"nodes\" {\n  type = object({a = optional(any, %s)})\n}\n",
		"module \"m\" {\n  source = %s\n}\n", "module \"m\" {\n  source = \"../${local.a}\"\n}\nlocals {\n  a = %s\n}\n", "output \"o\" {\n  value = file(%s)\n}\n",
		"terraform {\n  backend \"s3\" {\n    bucket = %[1]s\n    assume_role = {(%[1]s) = %[1]s}\n  }\n}\n",
	} {
		resolveFaults(t, tree(with(moduleFiles(), "infra/own/loop.tf", fmt.Sprintf(code, loop))), clusterOf(t, "c.yaml", moduleCluster))
	}
}

// TestResolverRemembers says that a second look at the same content reads
// nothing.
func TestResolverRemembers(t *testing.T) {
	t.Parallel()

	files := with(moduleFiles())
	delete(files, "infra/own/common.tf")
	delete(files, "infra/own/data")
	tr := tree(files)
	resolver := templates.NewResolver(nil)
	doc := clusterOf(t, "c.yaml", moduleCluster)
	for range 2 {
		if _, faults, err := resolver.Resolve(t.Context(), tr, doc); err != nil || faults != nil {
			t.Fatal(err, faults)
		}
	}
	before := tr.reads
	if _, _, err := resolver.Resolve(t.Context(), tr, doc); err != nil {
		t.Fatal(err)
	}
	if tr.reads != before {
		t.Errorf("%d files were read again", tr.reads-before)
	}
}
