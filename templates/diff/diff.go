package diff

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/schema"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Templates returns how two versions of a template differ: variables first, then rules,
// providers, modules and outputs, each by name. What reads the same is left out. A
// change whose effect on documents is not known, such as that of a pattern, counts as
// breaking.
func Templates(from, to templates.Blueprint) []rollout.TemplateChange {
	d := &differ{from: from, to: to}
	if from.Name != to.Name {
		d.add("template", "is now called "+to.Name+", not "+from.Name, true)
	}
	if from.Description != to.Description {
		d.add("template", "has a new description", false)
	}
	d.variables()
	d.rules()
	was, now := providersOf(from), providersOf(to)
	for _, name := range either(was, now) {
		d.provider("provider "+name, name, was[name], now[name])
	}
	d.modules()
	d.outputs()
	return d.sorted()
}

type differ struct {
	from, to templates.Blueprint
	changes  []rollout.TemplateChange
}

func (d *differ) add(about, what string, breaking bool) {
	const most = 300
	if len(what) > most {
		what = strings.ToValidUTF8(what[:most], "") + "…"
	}
	d.changes = append(d.changes, rollout.TemplateChange{About: about, What: what, Breaking: breaking})
}

func (d *differ) sorted() []rollout.TemplateChange {
	kinds := []string{"template", "variables", "variable", "rule", "provider", "engine", "module", "output"}
	rank := func(c rollout.TemplateChange) int {
		kind, _, _ := strings.Cut(c.About, " ")
		return slices.Index(kinds, kind)
	}
	slices.SortStableFunc(d.changes, func(a, b rollout.TemplateChange) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.About, b.About),
			breakingFirst(a.Breaking, b.Breaking), cmp.Compare(a.What, b.What))
	})
	return slices.Compact(d.changes)
}

func breakingFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// rules compares rules by their text; one whose message stays and whose text
// does not has changed.
func (d *differ) rules() {
	plain := func(r templates.RuleBlueprint) string { return strings.Join(strings.Fields(r.Rule), " ") }
	find := func(in []templates.RuleBlueprint, like func(templates.RuleBlueprint) bool) *templates.RuleBlueprint {
		if i := slices.IndexFunc(in, like); i >= 0 {
			return &in[i]
		}
		return nil
	}
	about := func(r templates.RuleBlueprint) string {
		return fmt.Sprintf("rule %q", wording.Clip(cmp.Or(r.Message, r.Rule)))
	}
	for _, now := range d.to.Rules {
		same := func(r templates.RuleBlueprint) bool { return plain(r) == plain(now) }
		said := func(r templates.RuleBlueprint) bool { return r.Message == now.Message }
		was := find(d.from.Rules, same)
		switch {
		case was == nil && find(d.from.Rules, said) != nil:
			d.add(about(now), "now requires "+wording.Clip(plain(now)), true)
		case was == nil:
			d.add(about(now), "is new: "+wording.Clip(plain(now)), true)
		case find(d.from.Rules, func(r templates.RuleBlueprint) bool { return same(r) && said(r) }) == nil:
			d.add(about(now), fmt.Sprintf("has a new message, not %q", wording.Clip(was.Message)), false)
		case find(d.from.Rules, func(r templates.RuleBlueprint) bool { return same(r) && said(r) && r.Path == now.Path }) == nil:
			d.add(about(now), "is reported at "+cmp.Or(now.Path, "spec.variables"), false)
		}
	}
	for _, was := range d.from.Rules {
		kept := func(r templates.RuleBlueprint) bool { return plain(r) == plain(was) || r.Message == was.Message }
		if find(d.to.Rules, kept) == nil {
			d.add(about(was), "is gone", false)
		}
	}
}

// byName returns the items of a list by their names, of which each is there once.
func byName[T any](list []T, name func(T) string) map[string]*T {
	out := make(map[string]*T, len(list))
	for i := range list {
		out[name(list[i])] = &list[i]
	}
	return out
}

func providersOf(b templates.Blueprint) map[string]*templates.ProviderBlueprint {
	return byName(b.Providers, func(p templates.ProviderBlueprint) string { return p.Name })
}

func (d *differ) provider(about, name string, was, now *templates.ProviderBlueprint) {
	switch {
	case was == nil:
		d.add(about, "is new", false)
		return
	case now == nil:
		d.add(about, "is gone", true)
		return
	}
	d.regions(about, was.Regions, now.Regions)
	d.instanceTypes(about, was.InstanceTypes, now.InstanceTypes)
	d.defaults(about, was.Defaults, now.Defaults)
	engineOf := func(e templates.EngineProvider) string { return e.Name }
	before, after := byName(was.Configure, engineOf), byName(now.Configure, engineOf)
	for _, engine := range either(before, after) {
		d.engineProvider(fmt.Sprintf("engine provider %s (%s)", engine, name), before[engine], after[engine])
	}
}

func (d *differ) regions(about string, was, now []string) {
	gone, more := without(was, now), without(now, was)
	switch {
	case len(now) == 0 && len(was) > 0:
		d.add(about, "now allows any region", false)
	case len(was) == 0 && len(now) > 0:
		d.add(about, "now allows only some regions: "+some(now), true)
	default:
		if len(gone) > 0 {
			d.add(about, "no longer allows the region "+some(gone), true)
		}
		if len(more) > 0 {
			d.add(about, "allows the region "+some(more)+", too", false)
		}
	}
}

func (d *differ) instanceTypes(about string, was, now []string) {
	narrower := schema.HasFormat(d.to.Schema, schema.InstanceType) // else nothing is held against the list
	if len(now) == 0 && len(was) > 0 {
		d.add(about, "now allows any instance type", false)
		return
	}
	if len(was) == 0 && len(now) > 0 {
		d.add(about, "now allows only some instance types: "+some(now), narrower)
		return
	}
	uncovered := func(of, by []string) []string {
		return slices.DeleteFunc(slices.Clone(of), func(glob string) bool {
			return slices.ContainsFunc(by, func(other string) bool { return covers(other, glob) })
		})
	}
	if gone := uncovered(was, now); len(gone) > 0 {
		d.add(about, "no longer allows the instance type "+some(gone), narrower)
	}
	if more := uncovered(now, was); len(more) > 0 {
		d.add(about, "allows the instance type "+some(more)+", too", false)
	}
}

// covers reports whether all that glob matches is matched by other, too. If that is not
// certain, it reports false.
func covers(other, glob string) bool {
	if other == glob {
		return true
	}
	if strings.ContainsAny(glob, `*?[\`) && strings.ContainsAny(glob+other, `?[\`) {
		return false
	}
	ok, err := path.Match(other, glob) // a * in glob is met by a * of other only
	return err == nil && ok
}

func (d *differ) defaults(about string, was, now map[string]any) {
	for _, name := range either(was, now) {
		before, had := was[name]
		after, has := now[name]
		switch {
		case had && !has:
			needed := slices.Contains(d.to.Required, name) && !filledIn(d.to.Schema, name)
			d.add(about, "no longer has a default for "+name, needed)
		case !had:
			d.add(about, fmt.Sprintf("has a default for %s: %s", name, wording.JSON(after)), false)
		case wording.JSON(before) != wording.JSON(after):
			d.add(about, fmt.Sprintf("has the default %s for %s, not %s", wording.JSON(after), name, wording.JSON(before)), false)
		}
	}
}

func (d *differ) engineProvider(about string, was, now *templates.EngineProvider) {
	switch {
	case was == nil:
		d.add(about, strings.TrimSpace("is now configured: "+now.Source+" "+now.Version), false)
		return
	case now == nil:
		d.add(about, "is no longer configured", false)
		return
	}
	if was.Source != now.Source {
		d.add(about, "comes from "+now.Source+", not "+was.Source, false)
	}
	if was.Version != now.Version {
		d.add(about, fmt.Sprintf("has the constraint %s, not %s", orAny(now.Version), orAny(was.Version)), false)
	}
}

func orAny(version string) string { return cmp.Or(version, "any version") }

// modules says what is the same for several providers once.
func (d *differ) modules() {
	told := map[[2]string][]string{} // module and change → providers
	var order [][2]string
	note := func(provider, module, what string) {
		key := [2]string{module, what}
		if told[key] == nil {
			order = append(order, key)
		}
		told[key] = append(told[key], provider)
	}
	moduleOf := func(m templates.ModuleBlueprint) string { return m.Name }
	before, after := providersOf(d.from), providersOf(d.to)
	for _, name := range either(before, after) {
		if before[name] == nil || after[name] == nil {
			continue // that says it all
		}
		was, now := byName(before[name].Modules, moduleOf), byName(after[name].Modules, moduleOf)
		for _, module := range either(was, now) {
			for _, what := range moduleChanges(was[module], now[module]) {
				note(name, module, what)
			}
		}
	}
	for _, key := range order {
		d.add(fmt.Sprintf("module %s (%s)", key[0], strings.Join(told[key], ", ")), key[1], false)
	}
}

func moduleChanges(was, now *templates.ModuleBlueprint) []string {
	switch {
	case was == nil:
		return []string{"is new: " + strings.TrimSpace(now.Source+" "+now.Version)}
	case now == nil:
		return []string{"is gone"}
	}
	var out []string
	tell := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if was.Source != now.Source {
		tell("comes from %s, not %s", now.Source, was.Source)
	}
	if was.Version != now.Version {
		tell("has the version %s, not %s", orAny(now.Version), orAny(was.Version))
	}
	switch {
	case was.When == now.When:
	case now.When == "":
		tell("is now always on, not only when %s", wording.Clip(was.When))
	case was.When == "":
		tell("is now on only when %s", wording.Clip(now.When))
	default:
		tell("is on when %s, not when %s", wording.Clip(now.When), wording.Clip(was.When))
	}
	if gone := without(was.DependsOn, now.DependsOn); len(gone) > 0 {
		tell("no longer depends on %s", some(gone))
	}
	if more := without(now.DependsOn, was.DependsOn); len(more) > 0 {
		tell("depends on %s, too", some(more))
	}
	for _, input := range either(was.Inputs, now.Inputs) {
		before, had := was.Inputs[input]
		after, has := now.Inputs[input]
		switch {
		case !has:
			tell("no longer gets %s", input)
		case !had:
			tell("gets %s = %s, too", input, wording.Clip(after))
		case before != after:
			tell("gets %s = %s, not %s", input, wording.Clip(after), wording.Clip(before))
		}
	}
	return out
}

func (d *differ) outputs() {
	outputOf := func(o templates.OutputBlueprint) string { return o.Name }
	was, now := byName(d.from.Outputs, outputOf), byName(d.to.Outputs, outputOf)
	for _, name := range either(was, now) {
		d.output("output "+name, was[name], now[name])
	}
}

func (d *differ) output(about string, was, now *templates.OutputBlueprint) {
	switch {
	case was == nil:
		d.add(about, "is new", false)
		return
	case now == nil:
		d.add(about, "is gone", true)
		return
	}
	switch {
	case was.Means == now.Means:
	case was.Means == "":
		d.add(about, "now means "+now.Means+" to Holdfast", false)
	case now.Means == "":
		d.add(about, "no longer means "+was.Means+" to Holdfast", true)
	default:
		d.add(about, fmt.Sprintf("means %s to Holdfast, not %s", now.Means, was.Means), true)
	}
	if was.Value != now.Value {
		d.add(about, fmt.Sprintf("is %s, not %s", wording.Clip(now.Value), wording.Clip(was.Value)), false)
	}
	if was.Sensitive != now.Sensitive {
		d.add(about, map[bool]string{true: "is now sensitive", false: "is no longer sensitive"}[now.Sensitive], false)
	}
	if was.Description != now.Description {
		d.add(about, "has a new description", false)
	}
}

// without returns those of a that are not in b, in their order.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// some lists words as far as they fit on a line.
func some(words []string) string {
	const most = 8
	if len(words) > most {
		return fmt.Sprintf("%s, … (%d in all)", strings.Join(words[:most], ", "), len(words))
	}
	return strings.Join(words, ", ")
}

// either returns the names that are in one of two maps or in both, sorted.
func either[V any](a, b map[string]V) []string {
	names := make(map[string]bool, len(a)+len(b))
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
