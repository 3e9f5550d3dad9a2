package templates_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/holdfast-dev/holdfast/templates"
)

// hostileTexts are texts that the engine could take for something else.
var hostileTexts = []string{
	"${var.x}", "$${var.x}", "$$${x}", "$$$${x}", "%{ if true }x%{ endif }", "%%{x}", "%%%{x}", "$%{", "%${", "${", "%{", "}",
	`"`, `\`, `\"`, `\${`, `$\{x}`, "\"}\n resource \"x\" {", "a\nb", "a\r\nb", "\t", "\r", "\u0001", "\u001b[31m", "\u007f", "\u0085",
	"<<EOF\nx\nEOF\n", "# comment", "// comment", "/* comment", "*/", "file(\"/etc/passwd\")", "${file(\"/etc/passwd\")}", "${\"${}\"}",
	"\u202eabc\u202c", "\ufeffbom", "e\u0301", "\u0301", "$\u0301{x}", "%\u200d{x}", "\"\u0301", "\\\u0301", "\u0600\"", "\U000110bd\"", "\u0e33",
	"👩‍👩‍👧", "🇪🇺", "\u2028\u2029", "\u00a0", "\u200b", "\ufffd", "\ud7ff", "\U0010ffff", "\ufdd0", "क्षि",
	"null", "true", "3", "1e3", "", " ", "~", "'", "`", "--", "{secret: {env: A}}",
}

// names are those of variables, inputs, outputs and modules that mean something
// elsewhere in the engine's language.
var hostileNames = []string{"a-", "a_-", "null", "true", "for", "in", "if", "each", "self", "var", "module", "local", "Ab"}

// TestEngineReadsLiterals plans a root module in which every text is hostile,
// and compares what the engine has read.
func TestEngineReadsLiterals(t *testing.T) {
	t.Parallel()

	bin := terraform(t)
	quoted := func(s string) string {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer("\u007f", `\x7f`, "\u0085", `\x85`).Replace(string(text))
	}
	var variables, values, outputs, inputs, code, keys strings.Builder
	for i, s := range hostileTexts {
		literal := quoted(strings.ReplaceAll(s, "${", "$${"))
		fmt.Fprintf(&variables, "      v%d: {type: string, description: %s}\n      d%d: {type: string, default: %s}\n", i, quoted(s), i, quoted(s))
		fmt.Fprintf(&values, "    v%d: %s\n    %s: of an open schema\n", i, quoted(s), quoted("x"+s))
		fmt.Fprintf(&outputs, "    v%d: {value: \"${var.v%d}\", description: %s}\n    d%d: \"${var.d%d}\"\n    l%d: %s\n    m%d: \"${module.m.o%d}\"\n",
			i, i, quoted(s), i, i, i, literal, i, i)
		fmt.Fprintf(&inputs, "            i%d: %s\n", i, literal)
		fmt.Fprintf(&code, "variable \"i%d\" {}\noutput \"o%d\" { value = var.i%d }\n", i, i, i)
		fmt.Fprintf(&keys, "%s: %d, ", quoted(s), i)
	}
	modules := ""
	for _, name := range hostileNames {
		fmt.Fprintf(&variables, "      %q: {type: string, default: x}\n", name)
		fmt.Fprintf(&outputs, "    %q: [\"${var.%s}\", \"${module.%s.x}\"]\n", name, name, name)
		fmt.Fprintf(&inputs, "            %q: \"${var.%s}\"\n", name, name)
		fmt.Fprintf(&code, "variable %q {}\n", name)
		modules += fmt.Sprintf("        - {name: %q, source: ./e}\n", name)
	}
	template := "apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: k}\nspec:\n  providers:\n    p:\n      modules:\n        - name: m\n          source: ./m\n          inputs:\n" +
		inputs.String() + modules + "  variables:\n    type: object\n    additionalProperties: true\n    properties:\n      given: {}\n      fallback: {default: {" + keys.String() + "}}\n" +
		variables.String() + "  outputs:\n    given: \"${var.given}\"\n    fallback: \"${var.fallback}\"\n    region: \"${cluster.region}\"\n" + outputs.String()
	region := strings.Join(hostileTexts, "")
	cluster := "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n  project: p\n  environment: e\n  template: {path: ../t}\n  region: " +
		quoted(region) + "\n  variables:\n    given: {" + keys.String() + "}\n" + values.String()
	root := resolve(t, tree(map[string]string{
		"t/template.yaml": template, "t/m/main.tf": code.String(), "t/e/x.tf": "output \"x\" { value = \"x\" }\n",
	}), clusterOf(t, "c/c.yaml", cluster))
	checkRead(t, planned(t, bin, root), region)
}

// planned returns the outputs of a plan, which has no warning.
func planned(t *testing.T, bin string, root *templates.Root) map[string]any {
	t.Helper()
	dir := unpack(t, root)
	config := filepath.Join(t.TempDir(), "terraformrc")
	for file, content := range map[string]string{
		config: "", filepath.Join(dir, "override.tf"): "terraform {\n  backend \"local\" {}\n}\n",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	engine := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHECKPOINT_DISABLE=1", "GOGC=400", "TF_CLI_CONFIG_FILE=" + config}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "Warning:") {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	engine("init", "-no-color")
	engine("plan", "-no-color", "-out=plan")
	var plan struct {
		Values struct {
			Outputs map[string]struct{ Value any } `json:"outputs"`
		} `json:"planned_values"`
	}
	if err := json.Unmarshal([]byte(engine("show", "-json", "plan")), &plan); err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for name, o := range plan.Values.Outputs {
		out[name] = o.Value
	}
	return out
}

// checkRead compares outputs with what was written, as the engine writes letters
// that can be written in two ways.
func checkRead(t *testing.T, outputs map[string]any, region string) {
	t.Helper()
	if got := outputs["region"]; got != norm.NFC.String(region) {
		t.Errorf("region is %q", got)
	}
	for i, s := range hostileTexts {
		want := norm.NFC.String(s)
		for _, of := range []string{"v", "d", "l", "m"} {
			if got := outputs[fmt.Sprint(of, i)]; got != want {
				t.Errorf("%s: %q is %q", of, s, got)
			}
		}
		for _, of := range []string{"given", "fallback"} {
			mapping, _ := outputs[of].(map[string]any)
			if got := mapping[want]; got != float64(i) {
				t.Errorf("%s: %q is %v", of, s, got)
			}
		}
	}
	for _, name := range hostileNames {
		if got := fmt.Sprint(outputs[name]); got != "[x x]" {
			t.Errorf("%s is %s", name, got)
		}
	}
}
