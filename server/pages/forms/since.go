package forms

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// What somebody else changes of a cluster while a form of it is open.

// wasPrefix is how the names of hidden fields begin that have what a field had when the form
// was opened. What was not touched is not proposed, and so does not undo what others did.
const wasPrefix = "was."

// fieldsOf are the fields of a form that a document fills in, by their names.
func fieldsOf(doc v1.Document) map[string]string {
	fields := map[string]string{"version": doc.Template.Version, "provider": doc.Provider, "region": doc.Region}
	for variable, value := range doc.Variables {
		fields[variablePrefix+variable] = written(value)
	}
	return fields
}

// follow updates the fields that were not touched to what the cluster has now, and notes the
// touched ones that somebody else has changed as well.
func (p *Proposal) follow(now map[string]string) {
	if !p.form.Has(wasPrefix + "version") { // whoever sends this has not got it from us
		for name, value := range now {
			p.form.Set(wasPrefix+name, value)
		}
	}
	names := maps.Clone(now)
	for name := range p.form {
		if name, is := strings.CutPrefix(name, wasPrefix); is {
			names[name] = ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		value, has := now[name]
		was, typed := p.form.Get(wasPrefix+name), p.form.Get(name)
		switch {
		case sameText(value, was) && has == p.form.Has(wasPrefix+name):
			continue
		case sameText(typed, was):
			p.form.Set(name, value)
		case !sameText(typed, value):
			p.moved = append(p.moved, name)
			continue
		}
		p.set(wasPrefix+name, value, has)
	}
}

// set gives a field a value, or takes it away.
func (p *Proposal) set(name, value string, has bool) {
	if p.form.Del(name); has {
		p.form.Set(name, value)
	}
}

// asksAgain has the form say what else has changed, and reports whether something has: whoever
// sends it again then has seen that.
func (p *Proposal) asksAgain() bool {
	now := fieldsOf(words.DocumentOf(p.cluster))
	var changes []string
	for _, name := range p.moved {
		value, has := now[name]
		changes = append(changes, fmt.Sprintf("%s is %q now", strings.TrimPrefix(name, variablePrefix), value))
		p.set(wasPrefix+name, value, has)
	}
	if len(changes) == 0 {
		return false
	}
	p.view.Alerts = append(p.view.Alerts, console.Alert{
		Tone: "warn", Title: "Somebody else has changed the same", Why: strings.Join(changes, "; ") + ". Nothing was sent.",
		Hint: "What you have typed is here: look at it, and send it again.",
	})
	return true
}
