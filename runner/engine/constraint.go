package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// constraint is a set of version constraints and where they come from.
type constraint struct {
	list  version.Constraints
	words string // such as `~> 1.9 (cluster)`; empty: any version
}

func (c constraint) allows(v *version.Version) bool {
	if len(c.list) == 0 {
		return v.Prerelease() == ""
	}
	return c.list.Check(v)
}

func constraintOf(cluster, file string, code []string) (constraint, error) {
	var c constraint
	var words []string
	add := func(text, from string) error {
		list, err := version.NewConstraint(text)
		if err != nil {
			return fmt.Errorf("engine version %q (%s): %w", text, from, err)
		}
		c.list = append(c.list, list...)
		words = append(words, fmt.Sprintf("%q (%s)", text, from))
		return nil
	}
	if cluster != "" {
		if err := add(cluster, "the cluster's engine.version"); err != nil {
			return c, err
		}
	}
	// tenv's strategies, such as latest-allowed, leave the choice to required_version.
	if file != "" && !strings.HasPrefix(file, "latest") && !strings.HasPrefix(file, "min") {
		if err := add(file, "a version file"); err != nil {
			return c, err
		}
	}
	for _, text := range code {
		if err := add(text, "required_version"); err != nil {
			return c, err
		}
	}
	c.words = strings.Join(words, " and ")
	return c, nil
}

// firstTofu is OpenTofu's first release: constraints that end before it are
// Terraform's.
var firstTofu = version.Must(version.NewVersion("1.6.0")) //nolint:gochecknoglobals // a constant

// possible reports whether any version that the tool could ever have fits. Of a
// set that fits at all, some version is a bound of one of its constraints or
// comes shortly after one: no more of those can be excluded one by one than there
// are constraints.
func (c constraint) possible(tool string) bool {
	floor := version.Must(version.NewVersion("0.0.0"))
	if tool == modulecode.Tofu {
		floor = firstTofu
	}
	bounds := []*version.Version{floor}
	for _, one := range c.list {
		text := strings.TrimLeft(one.String(), "=!<>~ ")
		if v, err := version.NewVersion(text); err == nil {
			bounds = append(bounds, v, v.Core())
		}
	}
	for _, bound := range bounds {
		if !bound.Core().LessThan(floor) && c.allows(bound) {
			return true
		}
		at := bound.Core().Segments()
		for range len(c.list) + 1 {
			at[2]++
			next, err := version.NewVersion(fmt.Sprintf("%d.%d.%d", at[0], at[1], at[2]))
			if err == nil && !next.LessThan(floor) && c.allows(next) {
				return true
			}
		}
	}
	return false
}

// exact returns the only version that fits, if a constraint names one.
func (c constraint) exact() (*version.Version, bool) {
	for _, one := range c.list {
		text := one.String()
		if !modulecode.ExactVersion.MatchString(text) {
			continue
		}
		if v, err := version.NewVersion(strings.TrimLeft(text, "= ")); err == nil && c.list.Check(v) {
			return v, true
		}
	}
	return nil, false
}

// possible is an error if no engine can ever fit, whatever is installed.
func (w Wish) possible() error {
	for _, tool := range w.tools {
		if w.constraints[tool].possible(tool) {
			return nil
		}
	}
	e := &contradictionError{words: w.constraints[w.tools[0]].words, tools: w.tools}
	for _, tool := range engineTools {
		if !slices.Contains(w.tools, tool) && w.constraints[tool].possible(tool) {
			e.other = tool
		}
	}
	if w.held {
		e.last = w.pinName + " " + w.pinVersion
	}
	return e
}

// contradictionError says that no engine can ever be what is asked for.
type contradictionError struct {
	words string   // the constraints
	tools []string // that they are for
	other string   // the engine that they would fit; empty: none
	last  string   // the engine of the last applied run, if that is why other is not taken
}

func (e *contradictionError) Error() string {
	text := fmt.Sprintf("no version of %s can satisfy %s", strings.Join(e.tools, " or "), e.words)
	if slices.Equal(e.tools, []string{modulecode.Tofu}) && e.other != "" {
		text += ": OpenTofu begins at " + firstTofu.String()
	}
	return text
}

func (e *contradictionError) hint() string {
	switch {
	case e.other != "" && e.last != "":
		return fmt.Sprintf("the cluster was last applied with %s, and its engine is changed only by name: set spec.engine.name to %s, or change the constraint", e.last, e.other)
	case e.other != "":
		return fmt.Sprintf("set spec.engine.name to %s, or change the constraint", e.other)
	}
	return "change spec.engine.version in the cluster's document, or required_version in the code"
}

// ChangedError says that code asks for another engine than the one that
// the cluster was last applied with.
type ChangedError struct{ from, to, why string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the cluster was last applied with %s, and %s: the engine is not changed unless the document names it", e.from, e.why)
}

func (e *ChangedError) hint() string {
	kept, _, _ := strings.Cut(e.from, " ")
	return fmt.Sprintf("set spec.engine.name to %s to change the engine, or to %s to keep it", e.to, kept)
}
