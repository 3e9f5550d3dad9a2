package plandoc_test

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
	"github.com/holdfast-dev/holdfast/internal/testenv/plandoctest"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

func encode(t *testing.T, d plandoc.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := d.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cloneDocument is deep.
func cloneDocument(t *testing.T, d plandoc.Document) plandoc.Document {
	t.Helper()
	c, err := plandoc.Decode(bytes.NewReader(encode(t, d)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDocumentRoundTrip(t *testing.T) {
	t.Parallel()
	d := plandoctest.Sample()
	again := cloneDocument(t, d)
	if !bytes.Equal(encode(t, d), encode(t, again)) || d.Digest() != again.Digest() || d.Fingerprint() != again.Fingerprint() {
		t.Errorf("got another document back:\n%s\n%s", encode(t, again), encode(t, d))
	}
	if want := holdfast.DigestOf(encode(t, d)); d.Digest() != want {
		t.Errorf("digest is %s, want that of the encoding, %s", d.Digest(), want)
	}
}

// TestDocumentIndented reads what somebody has printed for people: the
// digest is of the canonical encoding, not of the bytes.
func TestDocumentIndented(t *testing.T) {
	t.Parallel()
	d := plandoc.Document{Version: 1, Outputs: []plandoc.Output{{Name: "a", Actions: []string{"delete"}, Before: plandoctest.Value("x")}}}
	var b bytes.Buffer
	if err := json.Indent(&b, encode(t, d), "", "  "); err != nil {
		t.Fatal(err)
	}
	again, err := plandoc.Decode(&b)
	if err != nil || again.Digest() != d.Digest() {
		t.Errorf("got %v with digest %s, want %s", err, again.Digest(), d.Digest())
	}
}

func TestDocumentCounts(t *testing.T) {
	t.Parallel()
	want := holdfast.Counts{Replace: 1, Delete: 1, Update: 1, Move: 1, Import: 1, Outputs: 2}
	if got := plandoctest.Sample().Counts(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	empty := plandoc.Document{Version: 1}
	if err := empty.Validate(); err != nil || !empty.Counts().Zero() {
		t.Errorf("an empty document: %v, %+v", err, empty.Counts())
	}
}

// TestDocumentSingleChanges: whatever is changed in a document, its digest
// changes, the differences name it, and what would be done differently changes
// the fingerprint.
func TestDocumentSingleChanges(t *testing.T) {
	t.Parallel()
	resource := func(i int, change func(r *plandoc.Resource)) func(*plandoc.Document) {
		return func(d *plandoc.Document) { change(&d.Resources[i]) }
	}
	at := map[string]int{}
	for i, r := range plandoctest.Sample().Resources {
		at[r.FullAddress()] = i
	}
	vpc, db := at["aws_vpc.main"], at["module.db.aws_db_instance.main"]
	moved, imported := at["aws_s3_bucket.new"], at["aws_s3_bucket.taken"]
	sameFingerprint := map[string]bool{"type and provider": true, "reason": true}
	tests := map[string]struct {
		change func(*plandoc.Document)
		word   string // in the differences
	}{
		"value before": {resource(vpc, func(r *plandoc.Resource) {
			r.Before = plandoctest.Value(map[string]any{"cidr": "10.0.0.0/17", "id": "vpc-1", "tags": map[string]any{"a": "1"}})
		}), "cidr"},
		"value after": {resource(db, func(r *plandoc.Resource) {
			r.After = bytes.Replace(r.After, []byte(`"size":2`), []byte(`"size":3`), 1)
		}), "size (3, reviewed was 2)"},
		"number written in another way": {resource(db, func(r *plandoc.Resource) {
			r.After = bytes.Replace(r.After, []byte(`"size":2`), []byte(`"size":2.0`), 1)
		}), "size"},
		"sensitive value": {resource(db, func(r *plandoc.Resource) {
			r.Before = bytes.Replace(r.Before, []byte(plandoctest.HMAC(1)), []byte(plandoctest.HMAC(9)), 1)
		}), "password"},
		"sensitive part of a string": {resource(db, func(r *plandoc.Resource) {
			r.After = bytes.Replace(r.After, []byte(plandoctest.HMAC(4)), []byte(plandoctest.HMAC(9)), 1)
		}), "user_data"},
		"known instead of unknown": {resource(vpc, func(r *plandoc.Resource) {
			r.After = bytes.Replace(r.After, []byte(`{"$unknown":true}`), []byte(`"vpc-2"`), 1)
		}), "id"},
		"words that look like unknown": {resource(vpc, func(r *plandoc.Resource) {
			r.After = bytes.Replace(r.After, []byte(`{"$unknown":true}`), []byte(`"(known after apply)"`), 1)
		}), "id"},
		"object that looks like unknown": {resource(vpc, func(r *plandoc.Resource) {
			r.After = bytes.Replace(r.After, []byte(`{"$unknown":true}`), []byte(`{"$$unknown":true}`), 1)
		}), "id"},
		"null instead of nothing": {resource(vpc, func(r *plandoc.Resource) {
			r.Before = bytes.Replace(r.Before, []byte(`"id"`), []byte(`"ida":null,"id"`), 1)
			r.Before = bytes.Replace(r.Before, []byte(`"ida":null,"id":"vpc-1"`), []byte(`"id":"vpc-1","ida":null`), 1)
		}), "its value"},
		"address":       {resource(db, func(r *plandoc.Resource) { r.Address = "module.db.aws_db_instance.other" }), "which was not reviewed"},
		"deposed key":   {resource(at["aws_vpc.main (deposed object 1a2b3c4d)"], func(r *plandoc.Resource) { r.Deposed = "ffffffff" }), "ffffffff"},
		"action":        {resource(db, func(r *plandoc.Resource) { r.Actions = []string{"delete", "create"} }), "replaced now, was to be updated"},
		"order":         {resource(vpc, func(r *plandoc.Resource) { r.Actions = []string{"create", "delete"} }), "in the order create, delete"},
		"replace path":  {resource(vpc, func(r *plandoc.Resource) { r.Replace = []string{"cidr", "tags"} }), "because of cidr, tags"},
		"no path":       {resource(vpc, func(r *plandoc.Resource) { r.Replace = nil }), "because of nothing named"},
		"move":          {resource(moved, func(r *plandoc.Resource) { r.Previous = "aws_s3_bucket.older" }), "aws_s3_bucket.older"},
		"move beside":   {resource(db, func(r *plandoc.Resource) { r.Previous = "aws_db_instance.main" }), "moved from aws_db_instance.main"},
		"import":        {resource(imported, func(r *plandoc.Resource) { r.Importing = plandoctest.Value("bucket-2") }), "another object is imported"},
		"import beside": {resource(db, func(r *plandoc.Resource) { r.Importing = plandoctest.Value("db-1") }), "another object is imported"},
		"type and provider": {resource(db, func(r *plandoc.Resource) {
			r.Provider = "registry.terraform.io/evil/aws"
		}), "evil/aws"},
		"reason":        {resource(vpc, func(r *plandoc.Resource) { r.Reason = "replace_because_tainted" }), "replace_because_tainted"},
		"resource gone": {func(d *plandoc.Document) { d.Resources = d.Resources[1:] }, "and now has no changes"},
		"output value": {func(d *plandoc.Document) {
			d.Outputs[1].After = plandoctest.Value(plandoc.Mark{HMAC: plandoctest.HMAC(9)})
		}, "output.token"},
		"output action": {func(d *plandoc.Document) { d.Outputs[0].Actions = []string{"update"} }, "updated now, was to be created"},
		"output name":   {func(d *plandoc.Document) { d.Outputs[1].Name = "zone" }, "output.zone"},
		"output gone":   {func(d *plandoc.Document) { d.Outputs = nil }, "output.endpoint"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := plandoctest.Sample()
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
	if lines := reviewed.Differences(plandoctest.Sample(), plandoctest.Sample()); lines != nil {
		t.Errorf("a document differs from itself: %q", lines)
	}
}

func TestDocumentInvalid(t *testing.T) {
	t.Parallel()
	tests := map[string]func(d *plandoc.Document){
		"version":        func(d *plandoc.Document) { d.Version = 2 },
		"no version":     func(d *plandoc.Document) { d.Version = 0 },
		"order":          func(d *plandoc.Document) { d.Resources[0], d.Resources[1] = d.Resources[1], d.Resources[0] },
		"twice":          func(d *plandoc.Document) { d.Resources[1] = d.Resources[0] },
		"output twice":   func(d *plandoc.Document) { d.Outputs[1] = d.Outputs[0] },
		"unknown action": func(d *plandoc.Document) { d.Resources[0].Actions = []string{"explode"} },
		"no action":      func(d *plandoc.Document) { d.Resources[0].Actions = nil },
		"nothing to do": func(d *plandoc.Document) {
			d.Resources[0].Actions, d.Resources[0].Previous = []string{"no-op"}, ""
		},
		"output action":            func(d *plandoc.Document) { d.Outputs[0].Actions = []string{"delete", "create"} },
		"no address":               func(d *plandoc.Document) { d.Resources[0].Address = "" },
		"another type":             func(d *plandoc.Document) { d.Resources[0].Type = "terraform_data" },
		"control character":        func(d *plandoc.Document) { d.Resources[0].Reason = "a\x1b[2K" },
		"long name":                func(d *plandoc.Document) { d.Outputs[1].Name = strings.Repeat("x", 20_000) },
		"replace paths unsorted":   func(d *plandoc.Document) { d.Resources[0].Replace = []string{"b", "a"} },
		"replace path twice":       func(d *plandoc.Document) { d.Resources[0].Replace = []string{"a", "a"} },
		"moves nowhere":            func(d *plandoc.Document) { d.Resources[0].Previous = d.Resources[0].Address },
		"created from something":   func(d *plandoc.Document) { d.Resources[0].Actions = []string{"create"} },
		"deleted into something":   func(d *plandoc.Document) { d.Resources[0].Actions = []string{"delete"} },
		"not JSON":                 func(d *plandoc.Document) { d.Resources[0].Before = []byte(`{"a":`) },
		"not canonical: space":     func(d *plandoc.Document) { d.Resources[0].Before = []byte(`{"a": 1}`) },
		"not canonical: order":     func(d *plandoc.Document) { d.Resources[0].Before = []byte(`{"b":1,"a":1}`) },
		"not canonical: twice":     func(d *plandoc.Document) { d.Resources[0].Before = []byte(`{"a":1,"a":1}`) },
		"not canonical: escape":    func(d *plandoc.Document) { d.Resources[0].Before = []byte(`{"a":"\u0041"}`) },
		"two values":               func(d *plandoc.Document) { d.Resources[0].Before = []byte(`1 2`) },
		"a mark of nothing":        func(d *plandoc.Document) { d.Resources[0].Before = []byte(`{"$unknown":false}`) },
		"a mark with a short hash": func(d *plandoc.Document) { d.Resources[0].Before = []byte(`{"$mark":"abcd"}`) },
		"a mark with more":         func(d *plandoc.Document) { d.Resources[0].Before = []byte(`{"$unknown":true,"a":1}`) },
		"a mark of a new kind":     func(d *plandoc.Document) { d.Resources[0].Before = []byte(`{"$new":true}`) },
		"too deep": func(d *plandoc.Document) {
			d.Resources[0].Before = []byte(strings.Repeat("[", 600) + strings.Repeat("]", 600))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := plandoctest.Sample()
			change(&d)
			if err := d.Validate(); err == nil {
				t.Error("it is valid")
			}
			var b bytes.Buffer
			if err := d.Encode(&b); err != nil {
				return
			}
			if _, err := plandoc.Decode(&b); err == nil && !strings.HasPrefix(name, "not canonical: space") {
				t.Errorf("it was read: %s", b.Bytes())
			}
		})
	}
	for _, text := range []string{"", "{}", "null", "[]", `{"version":1} {}`, `{"version":1,"more":1}`, `{"version":1,"resources":[{}]}`} {
		if _, err := plandoc.Decode(strings.NewReader(text)); err == nil {
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
		return plandoc.Mark{Unknown: true}
	case n == 10:
		return []any{
			plandoc.Mark{HMAC: plandoctest.HMAC(byte(r.IntN(2)))},
			plandoc.Mark{HMAC: plandoctest.HMAC(1), Unknown: true},
			plandoc.Mark{HMAC: plandoctest.HMAC(1), Text: words[1+r.IntN(len(words)-1)]},
		}[r.IntN(3)]
	default:
		return words[r.IntN(len(words))]
	}
}

// TestValueIsUnambiguous: two trees have the same encoding if and only if
// they are equal, and each comes back from its encoding.
func TestValueIsUnambiguous(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]any{}
	for range 20_000 {
		tree := randomTree(r, 3)
		value := plandoctest.Value(tree)
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

// FuzzDocument: what is read is in its canonical form, and nothing that can
// be read makes the functions panic.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"version":1,"resources":[{"address":"a.b","type":"a","actions":["update"],"before":{"x":1},"after":{"x":{"$unknown":true}}}],"outputs":[]}`))
	f.Add([]byte(`{"version":1,"resources":[],"outputs":[{"name":"a","actions":["create"],"after":{"$mark":"` + plandoctest.HMAC(1) + `"}}]}`))
	f.Add([]byte(`{"version":1,"resources":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := plandoc.Decode(bytes.NewReader(data))
		if err != nil {
			return
		}
		again := cloneDocument(t, d)
		if again.Digest() != d.Digest() || len(reviewed.Differences(again, d)) > 0 || !reviewed.Remains(again, d) {
			t.Fatalf("%s comes back as another document", data)
		}
		plandiff.Plan(d, plandoc.Info{Drift: d.Resources})
	})
}
