package access_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/access"
)

// TestTable: each verb is there once, with a role; who reads may change nothing.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[access.Verb]bool{}
	for _, right := range access.Table() {
		if seen[right.Verb] || !right.Role.IsValid() || right.Words == "" {
			t.Errorf("row %+v", right)
		}
		seen[right.Verb] = true
		if right.Role == access.Viewer && right.Verb != access.Read && right.Verb != access.Login {
			t.Errorf("a viewer may %s", right.Verb)
		}
	}
	if role := access.Verb("nonsense").Role(); role != "" || access.Admin.Includes(role) {
		t.Errorf("an unknown verb takes the role %q", role)
	}
	if access.Operator.Includes(access.Approve.Role()) {
		t.Error("an operator may approve")
	}
}

// TestRoles walks all pairs: each role includes the weaker ones and no stronger one, and an
// unknown one nothing.
func TestRoles(t *testing.T) {
	t.Parallel()
	for i, r := range access.Roles() {
		for j, other := range access.Roles() {
			if r.Includes(other) != (i >= j) {
				t.Errorf("%s.Includes(%s) = %v", r, other, r.Includes(other))
			}
		}
		for _, unknown := range []access.Role{"", "root"} {
			if r.Includes(unknown) || unknown.Includes(r) || unknown.Includes(unknown) {
				t.Errorf("%q and %q", r, unknown)
			}
		}
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	mixed := access.GrantsOf(access.Viewer).With(access.GrantsOf(access.Approver, "web")).With(access.GrantsOf(access.Operator, "payments", "web"))
	if diff := cmp.Diff(access.Grants{"*": access.Viewer, "web": access.Approver, "payments": access.Operator}, mixed); diff != "" {
		t.Errorf("With() (-want +got):\n%s", diff)
	}
	for project, want := range map[string]access.Role{"web": access.Approver, "payments": access.Operator, "new": access.Viewer, "": access.Viewer} {
		if got := mixed.Role(project); got != want {
			t.Errorf("Role(%q) = %q, want %q", project, got, want)
		}
	}
	type reach struct {
		Projects []string
		All      bool
	}
	for role, want := range map[access.Role]reach{
		access.Viewer: {nil, true}, access.Operator: {[]string{"payments", "web"}, false}, access.Approver: {[]string{"web"}, false}, access.Admin: {nil, false},
	} {
		projects, all := mixed.Projects(role)
		if diff := cmp.Diff(want, reach{projects, all}); diff != "" {
			t.Errorf("Projects(%s) (-want +got):\n%s", role, diff)
		}
	}
	if got := mixed.Highest(); got != access.Approver {
		t.Errorf("Highest() = %q", got)
	}
	if none := (access.Grants{}); none.Highest() != "" || none.May(access.Read, "web") || none.Role("") != "" {
		t.Error("without grants something is granted")
	}
	if !mixed.May(access.Approve, "web") || mixed.May(access.Approve, "payments") || mixed.May(access.Plan, "new") {
		t.Error("May() is not by project")
	}
}

// TestWithin: what a token is made for never adds anything.
func TestWithin(t *testing.T) {
	t.Parallel()
	owner := access.Grants{"*": access.Viewer, "web": access.Admin}
	for name, tc := range map[string]struct{ limit, want access.Grants }{
		"weaker, everywhere":     {access.GrantsOf(access.Operator), access.Grants{"*": access.Viewer, "web": access.Operator}},
		"one project":            {access.GrantsOf(access.Admin, "web"), access.Grants{"web": access.Admin}},
		"a project of all":       {access.GrantsOf(access.Admin, "other"), access.Grants{"other": access.Viewer}},
		"nothing":                {access.Grants{}, access.Grants{}},
		"a role that is not one": {access.Grants{"*": "root"}, access.Grants{}},
	} {
		if diff := cmp.Diff(tc.want, owner.Within(tc.limit)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestGrantsFor(t *testing.T) {
	t.Parallel()
	id, account := access.PersonID{Issuer: "https://id.example.com", Subject: "4 2"}, access.ForgePerson("acme", "7")
	anna := access.Person{ID: id, Groups: []string{"platform"}, Links: []access.PersonID{account}}
	for name, tc := range map[string]struct {
		binding access.Binding
		want    access.Role
	}{
		"group":          {access.Binding{Role: access.Admin, Groups: []string{"x", "platform"}}, access.Admin},
		"another group":  {access.Binding{Role: access.Admin, Groups: []string{"Platform"}}, ""},
		"person":         {access.Binding{Role: access.Viewer, People: []access.PersonID{id}}, access.Viewer},
		"linked account": {access.Binding{Role: access.Viewer, People: []access.PersonID{account}}, access.Viewer},
		"another issuer": {access.Binding{Role: access.Viewer, People: []access.PersonID{{Issuer: "https://evil.example.com", Subject: "4 2"}}}, ""},
		"everyone":       {access.Binding{Role: access.Viewer, Everyone: true}, access.Viewer},
		"nobody":         {access.Binding{Role: access.Viewer}, ""},
	} {
		if got := access.GrantsFor(anna, []access.Binding{tc.binding}).Role("web"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := access.ParsePersonID(id.String()); got != id {
		t.Errorf("ParsePersonID(String()) = %+v", got)
	}
	if account.Forge() != "acme" || id.Forge() != "" {
		t.Error("Forge() is wrong")
	}
}
