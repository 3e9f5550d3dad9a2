//go:build !race

package boundedhcl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
)

const n = 150_000 // of each piece: enough to overflow a stack of 1 GB

// attacks are files whose parser, or whoever walks through what it makes, would end the
// process, or not end.
func attacks() map[string]string {
	many := strings.Repeat
	return map[string]string{
		"brackets":                     "a = " + many("(", n) + "1" + many(")", n) + "\n",
		"brackets after a comment":     "# " + many(")", n) + "\na = " + many("(", n) + "1" + many(")", n) + "\n",
		"brackets after a text":        "b = \"" + many("]", n) + "\"\na = " + many("[", n) + many("]", n) + "\n",
		"brackets of other kinds":      "a = " + many("([{a=", n/3),
		"brackets that are not closed": "a = " + many("[", n),
		"signs":                        "a = " + many("-", n) + "1\n",
		"signs apart":                  "a = " + many("-/**/", n) + "1\n",
		"negations":                    "a = " + many("!", n) + "b\n",
		"directives":                   "a = \"" + many("%{if b}", n) + many("%{endif}", n) + "\"\n",
		"directives that do not end":   "a = \"" + many("%{if b}", n) + "\"\n",
		"loops in a text":              "a = <<X\n" + many("%{for b in c}", n) + many("%{endfor}", n) + "\nX\n",
		"else":                         "a = \"" + many("%{if b}%{else}", n) + many("%{endif}", n) + "\"\n",
		"texts":                        "a = " + many("\"${", n),
		"conditionals":                 "a = " + many("b?", n) + "1" + many(":1", n) + "\n",
		"else conditionals":            "a = " + many("b?1:", n) + "1\n",
		"sums":                         "a = 1" + many("+1", n) + "\n",
		"truths":                       "a = b" + many("&&b", n) + "\n",
		"splats":                       "a = b" + many("[*]", n) + "\n",
		"old splats":                   "a = b" + many(".*[0]", n) + "\n",
		"indices":                      "a = b" + many("[c]", n) + "\n",
		"indices in brackets":          "a = b" + many("[(0)]", n) + "\n",
		"calls":                        "a = " + many("f(", n) + many(")", n) + "\n",
		"blocks":                       many("a {\n", n) + many("}\n", n),
		"loops":                        "a = " + many("[for b in ", n),
		"a sum in each bracket":        "a = " + many("(1+", n) + "1" + many(")", n) + "\n",
		"a list after a sum":           "a = [1, 1" + many("+1", n) + ", 2]\n",
		// What the parser does after an error is not what the brackets say.
		"closed in what is skipped": many("a {\n x ] }\n", n),
		"closed in a function":      many("a = \"${\"${\"${ f::}\"}\"}\"\nb = \"${ ( ) }\n", n/10),
		"closed within a line":      "x = [ a[b [c]]\n" + many("y {\n z }\n", n) + "]\n",
		"closed after a bad number": many("a {\n b { x = (1.2.3) ? f : g }\n}\n", n/3),
		"closed after a bad text":   many("a {\n b { x = (\"\\q\") ? f : g }\n}\n", n/3),
		"a number":                  "a = 1e600000000\n",
		"a small number":            "a = 1e-3000000\n",
		"a number in a text":        "a = \"${1E+600000000}\"\n",
		"a long number":             "a = " + many("1", n) + "\n",
		"a number beyond all":       "a = 1e99999999999999999999\n",
		"tokens":                    "a = [" + many("1,", boundedhcl.MaxTokens/2) + "]\n",
		"lines of a text":           "a = <<X\n" + many("b\n", n) + "X\n",
		"parts of a text":           "a = \"" + many("$a", n) + "\"\n",
		"parts of a name":           "a = b" + many("::b", n) + "(1)\n",
		"errors":                    "a = \"" + many(`\q`, n) + "\"\n",
	}
}

func TestAttacks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reads megabytes of tokens")
	}
	for name, code := range attacks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := boundedhcl.ParseFile([]byte(code), "main.tf")
			if !errors.Is(err, boundedhcl.ErrExcess) {
				t.Errorf("it is parsed: %v", err)
			}
			expr, ok := strings.CutPrefix(code, "a = ")
			if !ok {
				return
			}
			if _, _, err := boundedhcl.ParseExpression(expr); !errors.Is(err, boundedhcl.ErrExcess) {
				t.Errorf("it is parsed as an expression: %v", err)
			}
		})
	}
}

func TestAttacksInJSON(t *testing.T) {
	t.Parallel()
	many := strings.Repeat
	for name, code := range map[string]string{
		"brackets":                    `{"a": ` + many("[", n) + many("]", n) + "}",
		"objects":                     many(`{"a":`, n) + "1" + many("}", n),
		"brackets after a text":       `{"//": "` + many("]", n) + `", "a": ` + many("[", n) + many("]", n) + "}",
		"keys":                        many("{", n),
		"a quote that is not one":     "[\"\u0600\",\",[" + many("[", n) + "\"]",
		"a template":                  `{"a": "${` + many("(", n) + `"}`,
		"directives":                  `{"a": "` + many("%{if b}", n) + `"}`,
		"an escaped template":         `{"a": "\u0024{` + many("(", n) + `"}`,
		"a template as a key":         `{"${` + many("(", n) + `": 1}`,
		"a number":                    `{"a": 1e600000000}`,
		"a small number":              `{"a": -1E-3000000}`,
		"a number in a template":      `{"a": "${1e600000000}"}`,
		"tokens":                      `{"a": [` + many("1,", boundedhcl.MaxTokens/2) + "1]}",
		"words that there are not":    `{"a": [` + many("tru,", n) + "1]}",
		"texts that there are not":    `{"a": [` + many(`"\q",`, n) + "1]}",
		"closed by the wrong bracket": many(`[{"a":1]`, n) + many("[", n),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := boundedhcl.ParseFile([]byte(code), "main.tf.json"); !errors.Is(err, boundedhcl.ErrExcess) {
				t.Errorf("it is parsed: %v", err)
			}
		})
	}
}

// TestWhatPeopleWrite: what is large and flat is read, and evaluated.
func TestWhatPeopleWrite(t *testing.T) {
	t.Parallel()
	many := strings.Repeat
	for name, code := range map[string]string{
		"question marks":    "# " + many("why? ", 10_000) + "\na = \"" + many("?", 50_000) + "\"\n",
		"brackets in texts": "a = \"" + many("(", 50_000) + "\"\n/* " + many("[", 50_000) + " */\n",
		"a list":            "a = [" + many("1, ", 50_000) + "]\n",
		"a list of terms":   "a = [" + many("-1.5 + 2, ", 5_000) + "]\n",
		"a list in lines":   "a = [\n" + many("  \"10.0.0.0/8\", # one\n", 50_000) + "]\n",
		"an object":         "a = {\n" + many("  \"k\" = { b = [0.5, true, null], c : \"x\" }\n", 20_000) + "}\n",
		"interpolations":    "a = \"" + many("${true}-", 5_000) + "\"\n",
		"directives":        "a = <<-EOT\n" + many("%{ if true ~}\nx\n%{ else ~}\ny\n%{ endif ~}\n", 1_000) + "EOT\n",
		"a long text":       "a = <<EOT\n" + many("To be, or not to be: that is (not) the \"question\"?\n", 5_000) + "EOT\n",
		"2 MB of comments":  "/* " + many("To be, or not to be: that is (not) the \"question\"?\n", 40_000) + "*/ a = 1\n",
		"2 MB of data":      "a = [\n" + many("  { name = \"node\", size = 3, zone = \"eu-west-1a\" },\n", 40_000) + "]\n",
		"a conditional":     "a = " + many("(true) ? 1 : ", 400) + "2\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, diags, err := boundedhcl.ParseFile([]byte(code), "main.tf")
			if err != nil || diags.HasErrors() {
				t.Fatal(err, diags)
			}
			attributes, _ := file.Body.JustAttributes()
			if _, err := boundedhcl.Evaluate(attributes["a"].Expr, nil); err != nil {
				t.Error(err)
			}
		})
	}
	large := `{"a": [` + many(`{"name": "node?", "size": 3.5e10, "text": "((${true}"},`, 50_000) + `1]}`
	if _, diags, err := boundedhcl.ParseFile([]byte(large), "main.tf.json"); err != nil || diags.HasErrors() {
		t.Error(err, diags)
	}
}

// TestSyntax: all of the language is followed, in a file that is large enough for that to
// matter.
func TestSyntax(t *testing.T) {
	t.Parallel()
	code := `
resource "a" b "c" { # a comment
  count = var.a ? 1 : 0 // another

  x { y = "z" } /* and */
  x {}
  x {
  }
  dynamic "y" {
    for_each = { for k, v in var.y : k => v... if v != null && !v.off }
    content {
      a = [for v in
        y.value : v if
        v > -1]
    }
  }
  list = [
    1, 2.5e-3, # three
    -var.n % 2 * 3 / 4 - 5 + 6,
  ]
  object = { a = 1, "b" : 2, (var.c) = 3
    "d${var.d}" = f(x, y...), e = {
      for x in y : x => x }
    var.a ? "x" : "y" = 1
  }
  call    = provider::a::b(1,
    2)
  indices = a.b[0].c["d"].*.e.0.f[*].g[var.h][-1].i
  texts   = "\n\u00e9\U0001F600\"\\ $${a} %%{b} ${~ "x${"y"}" ~} %{ if a ~} b %{~ else } c %{ endif }%{ for a, b in c }${a}%{ endfor }"
  doc     = <<-EOT
    ${a} %{ for a in b ~}
    "x" { [ (
    %{ endfor ~}
  EOT
  docs    = [<<A
a
A
  , <<B
b
B
  ]
  nested  = (a == b || c <= d && (e >= f)) != (
    g < h ? i : j ? k : l
  )
}
`
	large := strings.Repeat(code, 400)
	if _, diags, err := boundedhcl.ParseFile([]byte(large), "main.tf"); err != nil || diags.HasErrors() {
		t.Error(err, diags)
	}
	// What is not of the language the parser explains, if that is small.
	if _, diags, err := boundedhcl.ParseFile([]byte(code+"x ]\n"), "main.tf"); err != nil || !diags.HasErrors() {
		t.Error(err, diags)
	}
	_, _, err := boundedhcl.ParseFile([]byte(large+"x ]\n"), "main.tf")
	if want := fmt.Sprintf("line %d: code does not follow", strings.Count(large, "\n")+1); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestEvaluationsThatWouldNotEnd: no number becomes a text that is too long, and no loop
// makes too much.
func TestEvaluationsThatWouldNotEnd(t *testing.T) {
	t.Parallel()
	many := strings.Repeat
	squares := "1e1000"
	for i := range 30 {
		squares = fmt.Sprintf("[for a%d in [%s] : a%d * a%d][0]", i, squares, i, i)
	}
	ones := "[" + many("1, ", 300) + "]"
	for name, text := range map[string]string{
		"squares":             `"${` + squares + `}"`,
		"products":            `"${1e1000` + many("*1e1000", 500) + `}"`,
		"quotients":           `"${1` + many("/1e1000", 500) + `}"`,
		"a text as a number":  `"${"1e600000000" * 1}"`,
		"the sign of a text":  `"${-"1e600000000"}"`,
		"a text in parts":     `"${"1e${600}000000" + 0}"`,
		"a text of a list":    `"${["1e600000000"][0] + 0}"`,
		"a text in a loop":    `[for a in ["1e600000000"] : "${a + 0}"]`,
		"a text behind *":     `["1e600000000"][*]` + " == 1 ? 1 : -{a = \"1e600000000\"}.a",
		"loops":               "[for a in " + ones + " : [for b in " + ones + " : [for c in " + ones + " : 1]]]",
		"loops over loops":    "[for a in [" + many(ones+", ", 10) + "] : [for b in a : [for c in a : [for d in a : 1]]]]",
		"loops over splats":   "[for a in [" + many(ones+", ", 10) + "][*] : [for b in a : [for c in a : [for d in a : 1]]]]",
		"texts in loops":      "[for a in " + ones + ` : "` + many("x", 1<<20) + `${a}"]`,
		"texts in two loops":  "[for a in " + ones + " : [for b in " + ones + ` : "` + many("x", 10_000) + `${a}"]]`,
		"doubled texts":       doubled(40),
		"a directive's loops": `"%{for a in ` + ones + `}%{for b in ` + ones + `}` + many("x", 10_000) + `${b}%{endfor}%{endfor}"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expr, diags, err := boundedhcl.ParseExpression(text)
			if err != nil || diags.HasErrors() {
				t.Fatal(err, diags)
			}
			if value, err := boundedhcl.Evaluate(expr, nil); !errors.Is(err, boundedhcl.ErrExcess) {
				t.Errorf("it is evaluated: %T, %v", value, err)
			}
		})
	}
	for text, want := range map[string]cty.Value{
		`60 * 60 * 24 * -30`:      cty.NumberIntVal(-2592000),
		`"${1e300}"[*]`:           cty.TupleVal([]cty.Value{cty.MustParseNumberVal("1e300")}),
		`"x${1e300}"`:             cty.StringVal("x1" + many("0", 300)),
		`true ? "a" : 1`:          cty.StringVal("a"),
		`{a = [1.5, "x"]}.a[1]`:   cty.StringVal("x"),
		`path.module`:             cty.StringVal("."),
		`"${path.module}/../x"`:   cty.StringVal("./../x"),
		`[for a in [1, 2] : a*2]`: cty.TupleVal([]cty.Value{cty.NumberIntVal(2), cty.NumberIntVal(4)}),
	} {
		expr, _, err := boundedhcl.ParseExpression(text)
		if err != nil {
			t.Fatal(err)
		}
		scope := &hcl.EvalContext{Variables: map[string]cty.Value{"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(".")})}}
		if got, err := boundedhcl.Evaluate(expr, scope); err != nil || !got.RawEquals(want) {
			t.Errorf("%s is %#v, %v", text, got, err)
		}
	}
}

// doubled is a text that each of a number of loops doubles.
func doubled(times int) string {
	text := `"` + strings.Repeat("x", 100) + `"`
	for i := range times {
		text = fmt.Sprintf(`[for a%d in [%s] : "${a%d}${a%d}"][0]`, i, text, i, i)
	}
	return text
}

// FuzzParse: what is parsed is not nested deeply, whatever it is.
func FuzzParse(f *testing.F) {
	for _, code := range attacks() {
		f.Add(code[:min(len(code), 20_000)])
	}
	f.Add("a = [\n  1, 2 # three\n]\nb \"c\" {\n  d = <<EOT\n${e}%{ if f }g%{ endif }\nEOT\n}\n")
	f.Fuzz(func(t *testing.T, code string) {
		file, diags, err := boundedhcl.ParseFile([]byte(code), "main.tf")
		if err == nil {
			// Each level is at most four expressions in one another, and code that does not
			// follow the grammar has at most 5,000.
			most := 4 * boundedhcl.MaxDepth
			if diags.HasErrors() {
				most = 20_000
			}
			if depth := depthOf(file.Body.(*hclsyntax.Body)); depth > most {
				t.Errorf("it is %d levels deep", depth)
			}
			attributes, _ := file.Body.JustAttributes()
			for _, attribute := range attributes {
				_, _ = boundedhcl.Evaluate(attribute.Expr, nil)
			}
		}
		_, _, _ = boundedhcl.ParseFile([]byte(code), "main.tf.json")
		_, _, _ = boundedhcl.ParseTemplate(code)
	})
}

func depthOf(node hclsyntax.Node) int {
	d := &depths{}
	_ = hclsyntax.Walk(node, d)
	return d.most
}

// depths is a walk through code that keeps how deep it went.
type depths struct{ now, most int }

func (d *depths) Enter(hclsyntax.Node) hcl.Diagnostics {
	d.now++
	d.most = max(d.most, d.now)
	return nil
}

func (d *depths) Exit(hclsyntax.Node) hcl.Diagnostics {
	d.now--
	return nil
}
