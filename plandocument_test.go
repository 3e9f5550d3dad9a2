package holdfast_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/internal/testenv/plandoc"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

func encode(t *testing.T, d holdfast.PlanDocument) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := d.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cloneDocument is deep.
func cloneDocument(t *testing.T, d holdfast.PlanDocument) holdfast.PlanDocument {
	t.Helper()
	c, err := holdfast.DecodePlanDocument(bytes.NewReader(encode(t, d)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPlanDocumentRoundTrip(t *testing.T) {
	t.Parallel()
	d := plandoc.Sample()
	again := cloneDocument(t, d)
	if !bytes.Equal(encode(t, d), encode(t, again)) || d.Digest() != again.Digest() || d.Fingerprint() != again.Fingerprint() {
		t.Errorf("got another document back:\n%s\n%s", encode(t, again), encode(t, d))
	}
	if want := holdfast.DigestOf(encode(t, d)); d.Digest() != want {
		t.Errorf("digest is %s, want that of the encoding, %s", d.Digest(), want)
	}
}

// TestPlanDocumentIndented reads what somebody has printed for people: the
// digest is of the canonical encoding, not of the bytes.
func TestPlanDocumentIndented(t *testing.T) {
	t.Parallel()
	d := holdfast.PlanDocument{Version: 1, Outputs: []holdfast.PlanOutput{{Name: "a", Actions: []string{"delete"}, Before: plandoc.Value("x")}}}
	var b bytes.Buffer
	if err := json.Indent(&b, encode(t, d), "", "  "); err != nil {
		t.Fatal(err)
	}
	again, err := holdfast.DecodePlanDocument(&b)
	if err != nil || again.Digest() != d.Digest() {
		t.Errorf("got %v with digest %s, want %s", err, again.Digest(), d.Digest())
	}
}

func TestPlanDocumentCounts(t *testing.T) {
	t.Parallel()
	want := holdfast.Counts{Replace: 1, Delete: 1, Update: 1, Move: 1, Import: 1, Outputs: 2}
	if got := plandoc.Sample().Counts(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	empty := holdfast.PlanDocument{Version: 1}
	if err := empty.Validate(); err != nil || !empty.Counts().Zero() {
		t.Errorf("an empty document: %v, %+v", err, empty.Counts())
	}
}

// TestPlanDocumentSingleChanges: whatever is changed in a document, its digest
// changes, the differences name it, and what would be done differently changes
// the fingerprint.
func TestPlanDocumentSingleChanges(t *testing.T) {
	t.Parallel()
	resource := func(i int, change func(r *holdfast.PlanResource)) func(*holdfast.PlanDocument) {
		return func(d *holdfast.PlanDocument) { change(&d.Resources[i]) }
	}
	at := map[string]int{}
	for i, r := range plandoc.Sample().Resources {
		at[r.FullAddress()] = i
	}
	vpc, db := at["aws_vpc.main"], at["module.db.aws_db_instance.main"]
	moved, imported := at["aws_s3_bucket.new"], at["aws_s3_bucket.taken"]
	sameFingerprint := map[string]bool{"type and provider": true, "reason": true}
	tests := map[string]struct {
		change func(*holdfast.PlanDocument)
		word   string // in the differences
	}{
		"value before": {resource(vpc, func(r *holdfast.PlanResource) {
			r.Before = plandoc.Value(map[string]any{"cidr": "10.0.0.0/17", "id": "vpc-1", "tags": map[string]any{"a": "1"}})
		}), "cidr"},
		"value after": {resource(db, func(r *holdfast.PlanResource) {
			r.After = bytes.Replace(r.After, []byte(`"size":2`), []byte(`"size":3`), 1)
		}), "size (3, reviewed was 2)"},
		"number written in another way": {resource(db, func(r *holdfast.PlanResource) {
			r.After = bytes.Replace(r.After, []byte(`"size":2`), []byte(`"size":2.0`), 1)
		}), "size"},
		"sensitive value": {resource(db, func(r *holdfast.PlanResource) {
			r.Before = bytes.Replace(r.Before, []byte(plandoc.HMAC(1)), []byte(plandoc.HMAC(9)), 1)
		}), "password"},
		"sensitive part of a string": {resource(db, func(r *holdfast.PlanResource) {
			r.After = bytes.Replace(r.After, []byte(plandoc.HMAC(4)), []byte(plandoc.HMAC(9)), 1)
		}), "user_data"},
		"known instead of unknown": {resource(vpc, func(r *holdfast.PlanResource) {
			r.After = bytes.Replace(r.After, []byte(`{"$unknown":true}`), []byte(`"vpc-2"`), 1)
		}), "id"},
		"words that look like unknown": {resource(vpc, func(r *holdfast.PlanResource) {
			r.After = bytes.Replace(r.After, []byte(`{"$unknown":true}`), []byte(`"(known after apply)"`), 1)
		}), "id"},
		"object that looks like unknown": {resource(vpc, func(r *holdfast.PlanResource) {
			r.After = bytes.Replace(r.After, []byte(`{"$unknown":true}`), []byte(`{"$$unknown":true}`), 1)
		}), "id"},
		"null instead of nothing": {resource(vpc, func(r *holdfast.PlanResource) {
			r.Before = bytes.Replace(r.Before, []byte(`"id"`), []byte(`"ida":null,"id"`), 1)
			r.Before = bytes.Replace(r.Before, []byte(`"ida":null,"id":"vpc-1"`), []byte(`"id":"vpc-1","ida":null`), 1)
		}), "its value"},
		"address":       {resource(db, func(r *holdfast.PlanResource) { r.Address = "module.db.aws_db_instance.other" }), "which was not reviewed"},
		"deposed key":   {resource(at["aws_vpc.main (deposed object 1a2b3c4d)"], func(r *holdfast.PlanResource) { r.Deposed = "ffffffff" }), "ffffffff"},
		"action":        {resource(db, func(r *holdfast.PlanResource) { r.Actions = []string{"delete", "create"} }), "replaced now, was to be updated"},
		"order":         {resource(vpc, func(r *holdfast.PlanResource) { r.Actions = []string{"create", "delete"} }), "in the order create, delete"},
		"replace path":  {resource(vpc, func(r *holdfast.PlanResource) { r.Replace = []string{"cidr", "tags"} }), "because of cidr, tags"},
		"no path":       {resource(vpc, func(r *holdfast.PlanResource) { r.Replace = nil }), "because of nothing named"},
		"move":          {resource(moved, func(r *holdfast.PlanResource) { r.Previous = "aws_s3_bucket.older" }), "aws_s3_bucket.older"},
		"move beside":   {resource(db, func(r *holdfast.PlanResource) { r.Previous = "aws_db_instance.main" }), "moved from aws_db_instance.main"},
		"import":        {resource(imported, func(r *holdfast.PlanResource) { r.Importing = plandoc.Value("bucket-2") }), "another object is imported"},
		"import beside": {resource(db, func(r *holdfast.PlanResource) { r.Importing = plandoc.Value("db-1") }), "another object is imported"},
		"type and provider": {resource(db, func(r *holdfast.PlanResource) {
			r.Provider = "registry.terraform.io/evil/aws"
		}), "evil/aws"},
		"reason":        {resource(vpc, func(r *holdfast.PlanResource) { r.Reason = "replace_because_tainted" }), "replace_because_tainted"},
		"resource gone": {func(d *holdfast.PlanDocument) { d.Resources = d.Resources[1:] }, "and now has no changes"},
		"output value": {func(d *holdfast.PlanDocument) {
			d.Outputs[1].After = plandoc.Value(holdfast.PlanMark{HMAC: plandoc.HMAC(9)})
		}, "output.token"},
		"output action": {func(d *holdfast.PlanDocument) { d.Outputs[0].Actions = []string{"update"} }, "updated now, was to be created"},
		"output name":   {func(d *holdfast.PlanDocument) { d.Outputs[1].Name = "zone" }, "output.zone"},
		"output gone":   {func(d *holdfast.PlanDocument) { d.Outputs = nil }, "output.endpoint"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := plandoc.Sample()
			got := cloneDocument(t, want)
			test.change(&got)
			if err := got.Validate(); err != nil {
				t.Fatal(err)
			}
			if got.Digest() == want.Digest() {
				t.Error("the digest is the same")
			}
			if same := got.Fingerprint() == want.Fingerprint(); same != sameFingerprint[name] {
				t.Errorf("the fingerprint is the same: %v", same)
			}
			if lines := strings.Join(reviewed.Differences(got, want), "\n"); !strings.Contains(lines, test.word) {
				t.Errorf("%q is not in the differences:\n%s", test.word, lines)
			}
			if lines := strings.Join(reviewed.Differences(want, got), "\n"); lines == "" {
				t.Error("no differences the other way round")
			}
		})
	}
	if lines := reviewed.Differences(plandoc.Sample(), plandoc.Sample()); lines != nil {
		t.Errorf("a document differs from itself: %q", lines)
	}
}

func TestPlanDocumentInvalid(t *testing.T) {
	t.Parallel()
	tests := map[string]func(d *holdfast.PlanDocument){
		"version":        func(d *holdfast.PlanDocument) { d.Version = 2 },
		"no version":     func(d *holdfast.PlanDocument) { d.Version = 0 },
		"order":          func(d *holdfast.PlanDocument) { d.Resources[0], d.Resources[1] = d.Resources[1], d.Resources[0] },
		"twice":          func(d *holdfast.PlanDocument) { d.Resources[1] = d.Resources[0] },
		"output twice":   func(d *holdfast.PlanDocument) { d.Outputs[1] = d.Outputs[0] },
		"unknown action": func(d *holdfast.PlanDocument) { d.Resources[0].Actions = []string{"explode"} },
		"no action":      func(d *holdfast.PlanDocument) { d.Resources[0].Actions = nil },
		"nothing to do": func(d *holdfast.PlanDocument) {
			d.Resources[0].Actions, d.Resources[0].Previous = []string{"no-op"}, ""
		},
		"output action":            func(d *holdfast.PlanDocument) { d.Outputs[0].Actions = []string{"delete", "create"} },
		"no address":               func(d *holdfast.PlanDocument) { d.Resources[0].Address = "" },
		"another type":             func(d *holdfast.PlanDocument) { d.Resources[0].Type = "terraform_data" },
		"control character":        func(d *holdfast.PlanDocument) { d.Resources[0].Reason = "a\x1b[2K" },
		"long name":                func(d *holdfast.PlanDocument) { d.Outputs[1].Name = strings.Repeat("x", 20_000) },
		"replace paths unsorted":   func(d *holdfast.PlanDocument) { d.Resources[0].Replace = []string{"b", "a"} },
		"replace path twice":       func(d *holdfast.PlanDocument) { d.Resources[0].Replace = []string{"a", "a"} },
		"moves nowhere":            func(d *holdfast.PlanDocument) { d.Resources[0].Previous = d.Resources[0].Address },
		"created from something":   func(d *holdfast.PlanDocument) { d.Resources[0].Actions = []string{"create"} },
		"deleted into something":   func(d *holdfast.PlanDocument) { d.Resources[0].Actions = []string{"delete"} },
		"not JSON":                 func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`{"a":`) },
		"not canonical: space":     func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`{"a": 1}`) },
		"not canonical: order":     func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`{"b":1,"a":1}`) },
		"not canonical: twice":     func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`{"a":1,"a":1}`) },
		"not canonical: escape":    func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`{"a":"\u0041"}`) },
		"two values":               func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`1 2`) },
		"a mark of nothing":        func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`{"$unknown":false}`) },
		"a mark with a short hash": func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`{"$mark":"abcd"}`) },
		"a mark with more":         func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`{"$unknown":true,"a":1}`) },
		"a mark of a new kind":     func(d *holdfast.PlanDocument) { d.Resources[0].Before = []byte(`{"$new":true}`) },
		"too deep": func(d *holdfast.PlanDocument) {
			d.Resources[0].Before = []byte(strings.Repeat("[", 600) + strings.Repeat("]", 600))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := plandoc.Sample()
			change(&d)
			if err := d.Validate(); err == nil {
				t.Error("it is valid")
			}
			var b bytes.Buffer
			if err := d.Encode(&b); err != nil {
				return
			}
			if _, err := holdfast.DecodePlanDocument(&b); err == nil && !strings.HasPrefix(name, "not canonical: space") {
				t.Errorf("it was read: %s", b.Bytes())
			}
		})
	}
	for _, text := range []string{"", "{}", "null", "[]", `{"version":1} {}`, `{"version":1,"more":1}`, `{"version":1,"resources":[{}]}`} {
		if _, err := holdfast.DecodePlanDocument(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// randomTree returns values that may look like marks.
func randomTree(r *rand.Rand, depth int) any {
	words := []string{"", "a", "$", "$$", "$mark", "$$mark", "$unknown", "$text", "(sensitive value)", "(known after apply)", "é\u2028<&>", "\x00\n"}
	switch n := r.IntN(12); {
	case n < 3 && depth > 0:
		m := map[string]any{}
		for range r.IntN(4) {
			m[words[r.IntN(len(words))]] = randomTree(r, depth-1)
		}
		return m
	case n < 6 && depth > 0:
		l := make([]any, r.IntN(4))
		for i := range l {
			l[i] = randomTree(r, depth-1)
		}
		return l
	case n == 6:
		return nil
	case n == 7:
		return r.IntN(2) == 0
	case n == 8:
		return json.Number(fmt.Sprint(r.IntN(3), ".", r.IntN(2)))
	case n == 9:
		return holdfast.PlanMark{Unknown: true}
	case n == 10:
		return []any{
			holdfast.PlanMark{HMAC: plandoc.HMAC(byte(r.IntN(2)))},
			holdfast.PlanMark{HMAC: plandoc.HMAC(1), Unknown: true},
			holdfast.PlanMark{HMAC: plandoc.HMAC(1), Text: words[1+r.IntN(len(words)-1)]},
		}[r.IntN(3)]
	default:
		return words[r.IntN(len(words))]
	}
}

// TestPlanValueIsUnambiguous: two trees have the same encoding if and only if
// they are equal, and each comes back from its encoding.
func TestPlanValueIsUnambiguous(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]any{}
	for range 20_000 {
		tree := randomTree(r, 3)
		value := plandoc.Value(tree)
		back, err := value.Tree()
		if err != nil || !reflect.DeepEqual(back, tree) {
			t.Fatalf("%#v comes back as %#v from %s: %v", tree, back, value, err)
		}
		if other, ok := seen[string(value)]; ok && !reflect.DeepEqual(other, tree) {
			t.Fatalf("%#v and %#v have the same encoding %s", other, tree, value)
		}
		seen[string(value)] = tree
	}
}

// FuzzPlanDocument: what is read is in its canonical form, and nothing that can
// be read makes the functions panic.
func FuzzPlanDocument(f *testing.F) {
	f.Add([]byte(`{"version":1,"resources":[{"address":"a.b","type":"a","actions":["update"],"before":{"x":1},"after":{"x":{"$unknown":true}}}],"outputs":[]}`))
	f.Add([]byte(`{"version":1,"resources":[],"outputs":[{"name":"a","actions":["create"],"after":{"$mark":"` + plandoc.HMAC(1) + `"}}]}`))
	f.Add([]byte(`{"version":1,"resources":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := holdfast.DecodePlanDocument(bytes.NewReader(data))
		if err != nil {
			return
		}
		again := cloneDocument(t, d)
		if again.Digest() != d.Digest() || len(reviewed.Differences(again, d)) > 0 || !reviewed.Remains(again, d) {
			t.Fatalf("%s comes back as another document", data)
		}
		plandiff.Plan(d, holdfast.PlanInfo{Drift: d.Resources})
	})
}
