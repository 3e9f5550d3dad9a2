package access

import (
	"maps"
	"slices"
)

// AllProjects stands for every project in Grants, also for those to come.
const AllProjects = "*"

// Grants are the roles that somebody has, by project. They are not changed once they were
// handed on.
type Grants map[string]Role

// GrantsOf is one role for projects; none means all of them.
func GrantsOf(role Role, projects ...string) Grants {
	if len(projects) == 0 {
		projects = []string{AllProjects}
	}
	grants := make(Grants, len(projects))
	for _, project := range projects {
		grants[project] = role
	}
	return grants
}

// With is g with the roles of other where these are stronger.
func (g Grants) With(other Grants) Grants {
	both := make(Grants, len(g)+len(other))
	maps.Copy(both, g)
	for project, role := range other {
		if had, ok := both[project]; !ok || role.Includes(had) {
			both[project] = role
		}
	}
	return both
}

// Role is the role in a project; empty: none.
func (g Grants) Role(project string) Role {
	own, all := g[project], g[AllProjects]
	if own.Includes(all) || !all.IsValid() {
		return own
	}
	return all
}

// Highest is the strongest role in any project; empty: none.
func (g Grants) Highest() Role {
	var highest Role
	for _, role := range g {
		if role.Includes(highest) || highest == "" {
			highest = role
		}
	}
	return highest
}

// Projects are those in which a role, or a stronger one, is granted, sorted; all reports
// that it is granted in every project.
func (g Grants) Projects(role Role) (projects []string, all bool) {
	if g[AllProjects].Includes(role) {
		return nil, true
	}
	for project, has := range g {
		if project != AllProjects && has.Includes(role) {
			projects = append(projects, project)
		}
	}
	slices.Sort(projects)
	return projects, false
}

// May reports whether a verb is allowed in a project.
func (g Grants) May(verb Verb, project string) bool { return g.Role(project).Includes(verb.Role()) }

// Within is g limited to what limit allows as well: a token allows no more than its owner
// may do.
func (g Grants) Within(limit Grants) Grants {
	both := make(Grants)
	for _, project := range append(slices.Collect(maps.Keys(g)), slices.Collect(maps.Keys(limit))...) {
		role, most := g.Role(project), limit.Role(project)
		if role.Includes(most) {
			role = most
		}
		if role.IsValid() && most.IsValid() {
			both[project] = role
		}
	}
	return both
}

// Equal reports whether both grant the same.
func (g Grants) Equal(other Grants) bool { return maps.Equal(g, other) }
