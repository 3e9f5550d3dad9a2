package planfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func stateText(resources string) string {
	return `{"version": 4, "serial": 3, "lineage": "l", "resources": [` + resources + `]}`
}

func stateOf(t *testing.T, resources string) *State {
	t.Helper()
	s, err := ReadState(strings.NewReader(stateText(resources)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func resource(name, instances string) string {
	return fmt.Sprintf(`{"mode": "managed", "type": "t", "name": %q, "provider": "provider[\"x/y/z\"]", "instances": [%s]}`, name, instances)
}

func TestCheckState(t *testing.T) {
	t.Parallel()
	a, deposed := `{"attributes": {"id": "1"}}`, `{"deposed": "d", "attributes": {"id": "2"}}`
	for name, c := range map[string]struct {
		given, prior string
		changes      []change
		want         []string // unshown, or an error
	}{
		"the same":                 {given: resource("a", a+","+deposed), prior: resource("a", a+","+deposed)},
		"data sources come and go": {prior: strings.Replace(resource("a", a), "managed", "data", 1)},
		"a deposed object is gone": {given: resource("a", a+","+deposed), prior: resource("a", a), want: []string{"t.a d gone"}},
		"a deposed object is destroyed": {
			given: resource("a", a+","+deposed), prior: resource("a", a+","+deposed),
			changes: []change{{address: "t.a", deposed: "d", action: 5, provider: `provider["x/y/z"]`}},
		},
		"gone, and made again": {
			given: resource("a", a), changes: []change{{address: "t.a", action: 1, provider: `provider["x/y/z"]`}},
			want: []string{`t.a by provider["x/y/z"], not provider["x/y/z"]`},
		},
		"made elsewhere":        {changes: []change{{address: "t.a", action: 1, provider: "p"}}, want: []string{"t.a by p, not "}},
		"a data source is read": {changes: []change{{address: "data.t.a", action: 2, provider: "p"}}},
		"other attributes": {
			given: resource("a", `{"attributes": {"id": "1", "b": {"x": [1, null], "n": null}, "c": "s", "d": "e"}, "sensitive_attributes": [[{"type": "get_attr", "value": "c"}]]}`),
			prior: resource("a", `{"attributes": {"d": "e", "c": "t", "b": {"x": [1, 2]}, "e": null, "id": "1", "f": 0}}`),
			want:  []string{`t.a drifted b={"x": [1, null], "n": null} c="s"(hidden) f=`},
		},
		"the same in another order": {
			given: resource("a", `{"attributes": {"id": "1", "b": {"x": 1, "n": null}}}`),
			prior: resource("a", `{"attributes": {"z": null, "b": {"n": null, "x": 1}, "id": "1"}}`),
		},
		"all is sensitive": {
			given: resource("a", `{"attributes": {"b": 1}, "sensitive_attributes": [[]]}`), prior: resource("a", `{"attributes": {}}`),
			want: []string{"t.a drifted b=1(hidden)"},
		},
		"attributes of a deposed object": {
			given: resource("a", a+","+deposed), prior: resource("a", a+`, {"deposed": "d", "attributes": {"id": "2", "x": 1}}`),
			want: []string{"t.a d drifted x="},
		},
		"an attribute twice": {given: resource("a", a), prior: resource("a", `{"attributes": {"id": "1", "x": 1, "x": 2}}`), want: []string{"twice"}},
		"gone, though nothing is to be done": {
			given: resource("a", a), changes: []change{{address: "t.a"}}, want: []string{"t.a  gone"},
		},
		"moved with its deposed object": {
			given: resource("a", a+","+deposed), prior: resource("b", a+","+deposed),
			changes: []change{{address: "t.b", previous: "t.a"}},
		},
		"moved onto another": {
			given: resource("a", a) + "," + resource("b", a), prior: resource("b", a),
			changes: []change{{address: "t.b", previous: "t.a"}}, want: []string{"one object for two"},
		},
		"another id":         {given: resource("a", a), prior: resource("a", `{"attributes": {"id": "9"}}`), want: []string{"t.a 1 9", `t.a drifted id="1"`}},
		"an id in two forms": {given: resource("a", a), prior: resource("a", `{"attributes": {"id": "9", "ID": "1"}}`), want: []string{"t.a 1 9", `t.a drifted ID= id="1"`}},
		"another identity": {
			given: resource("a", `{"attributes": {"id": "1"}, "identity": {"a": 1, "b": 2}}`),
			prior: resource("a", `{"attributes": {"id": "1"}, "identity": {"b": 2, "a": 3}}`),
			want:  []string{`t.a 1 {"a":1,"b":2} 1 {"a":3,"b":2}`},
		},
		"an identity is new": {given: resource("a", a), prior: resource("a", `{"attributes": {"id": "1"}, "identity": {"a": 1}}`)},
		"an old state":       {given: resource("a", `{"attributes_flat": {"id": "1"}}`), prior: resource("a", a)},
		"new":                {prior: resource("a", a), want: []string{"not imported"}},
		"imported": {
			prior: resource("a", a), changes: []change{{address: "t.a", importing: true}},
			want: []string{`t.a by provider["x/y/z"], not `},
		},
		"tainted no longer":  {given: resource("a", `{"status": "tainted"}`), prior: resource("a", `{}`), want: []string{"in another condition"}},
		"two changes of one": {changes: []change{{address: "t.a"}, {address: "t.a", action: 1}}, want: []string{"two changes"}},
		"a data source is not a place to move to": {
			given: resource("a", a), changes: []change{{address: "data.d.x", previous: "t.a", action: 5}}, want: []string{"t.a  gone"},
		},
		"nor one in a module": {
			given: resource("a", a), changes: []change{{address: `module.m["a.b"].data.d.x`, previous: "t.a", action: 5}}, want: []string{"t.a  gone"},
		},
		"destroyed elsewhere, as the state has it": {
			given: resource("a", a), prior: strings.Replace(resource("a", a), `z\"]`, `z\"].west`, 1),
			changes: []change{{address: "t.a", action: 5, provider: `provider["x/y/z"]`}},
			want:    []string{`t.a by provider["x/y/z"].west, not provider["x/y/z"]`},
		},
		"destroyed elsewhere, as the change has it": {
			given: resource("a", a), prior: resource("a", a),
			changes: []change{{address: "t.a", action: 5, provider: `provider["x/y/z"].west`}},
			want:    []string{`t.a by provider["x/y/z"].west, not provider["x/y/z"]`},
		},
		"keys of all kinds":    {given: resource("a", `{"index_key": 0}, {"index_key": "0"}`), prior: resource("a", `{"index_key": 0}, {"index_key": "0"}`)},
		"a number as a string": {given: resource("a", `{"index_key": 0}`), prior: resource("a", `{"index_key": "0"}`), want: []string{"not imported"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlan()
			var err error
			for _, change := range c.changes {
				err = errors.Join(err, p.add(change))
			}
			prior, errPrior := readState(strings.NewReader(stateText(c.prior)), false)
			var found Differences
			if err = errors.Join(err, errPrior); errPrior == nil {
				var errState error
				found, errState = p.CheckState(stateOf(t, c.given), prior)
				err = errors.Join(err, errState)
			}
			var got []string
			for _, u := range found.Unshown {
				line := u.Address + " " + u.WasID + " " + u.ID
				if u.Gone {
					line = u.Address + " " + u.Deposed + " gone"
				}
				got = append(got, line)
			}
			for _, d := range found.Drifted {
				line := strings.TrimSpace(d.Address+" "+d.Deposed) + " drifted"
				for _, a := range d.Attributes {
					line += fmt.Sprintf(" %s=%s", a.Name, a.Was)
					if a.Hidden {
						line += "(hidden)"
					}
				}
				got = append(got, line)
			}
			for _, u := range found.Providers {
				got = append(got, fmt.Sprintf("%s by %s, not %s", strings.TrimSpace(u.Address+" "+u.Deposed), u.Provider, u.Made))
			}
			if err != nil {
				if len(c.want) != 1 || !strings.Contains(err.Error(), c.want[0]) {
					t.Errorf("CheckState() = %v, want %q", err, c.want)
				}
				return
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("CheckState() = %q, want %q", got, c.want)
			}
		})
	}
}

// Engines take a member of a state for one of another name in some letters: what is
// not exactly one of theirs is refused.
func TestStateOfOtherWords(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]string{
		"a long s":         `{"version": 4, "serial": 3, "lineage": "l", "resources": [], "re\u017fource\u017f": []}`,
		"other letters":    `{"version": 4, "Serial": 3}`,
		"a Kelvin sign":    `{"version": 4, "chec\u212a_results": null}`,
		"a member of ours": `{"version": 4, "resources2": []}`,
		"a member twice":   `{"version": 4, "serial": 3, "serial": 4}`,
	} {
		if _, err := ReadState(strings.NewReader(state)); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}

func TestIsData(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"data.a.b": true, "a.b": false, "module.m.data.a.b": true, "module.m.a.data": false, `module.m["data.x.y"].a.b`: false,
		`module.m["\"].data.a.b"].a.b`: false, `module.m["x"].module.n[0].data.a.b[1]`: true, "database.a": false, "module.m": false,
	} {
		if got := isData(address); got != want {
			t.Errorf("isData(%q) = %t, want %t", address, got, want)
		}
	}
}
