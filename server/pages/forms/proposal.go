package forms

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// Path is the page of the form for a new cluster, and takes it.
const Path = "/new"

// Proposal is a form for a new cluster, or for a change of one, with what was typed.
type Proposal struct {
	*Visitor
	form    url.Values
	change  string
	cluster v1.Cluster // that is changed
	detail  v1.TemplateDetail
	gone    string   // why the version that was chosen cannot be used
	veiled  []string // variables with a placeholder, which must not become a value
	moved   []string // fields that somebody else has changed, too, since the form was opened
	view    console.NewView
	title   string
	crumbs  []console.Link
	made    *Made
}

// Made is the pull request that a form became.
type Made struct {
	Href string        // its page
	Said console.Alert // on that page
}

// Create is the form for a new cluster, or first what it can be made from.
func (v *Visitor) Create(query url.Values) *Proposal {
	return &Proposal{Visitor: v, form: query, change: proposals.Create}
}

// Change is the form for a change of a cluster, filled in as it is.
func (v *Visitor) Change(cluster string) *Proposal {
	return &Proposal{Visitor: v, form: url.Values{"cluster": {cluster}}, change: proposals.Update}
}

// Sent is a form as somebody has sent it.
func (v *Visitor) Sent(form url.Values) *Proposal {
	return &Proposal{Visitor: v, form: form, change: cmp.Or(form.Get("change"), proposals.Create)}
}

// Head is the title of the form's page and what stands above it, once it is shown.
func (p *Proposal) Head() (title string, crumbs []console.Link) { return p.title, p.crumbs }

// Made is the pull request that the form became; nil if it became none.
func (p *Proposal) Made() *Made { return p.made }

// Show fills in the form, and proposes what it makes if that is asked for and nothing is wrong
// with it.
func (p *Proposal) Show(proposes bool) (console.View, error) {
	p.title = "New cluster"
	p.crumbs = []console.Link{{Text: "Fleet", Href: "/"}, {Text: "New cluster"}}
	p.view.Change = p.change
	if p.change == proposals.Update {
		if err := p.readCluster(); err != nil {
			return nil, err
		}
		proposes = proposes && !p.asksAgain()
	}
	if !p.mayPropose() {
		return nil, call.Refusal(http.StatusForbidden, "proposing clusters requires the role operator, and a session", "ask an administrator of Holdfast for that role, or sign in")
	}
	p.view.Template = p.form.Get("template")
	if p.view.Template == "" {
		return p.view, p.choices()
	}
	if err := p.readTemplate(); err != nil {
		return nil, err
	}
	p.fields()
	made, err := p.ask(true)
	if err != nil {
		return p.view, err
	}
	if proposes && made != nil && len(made.Faults) == 0 && p.gone == "" {
		if made, err = p.ask(false); err != nil || made == nil {
			return p.view, err
		}
		p.proposed(*made)
	}
	return p.view, nil
}

// mayPropose reports whether the viewer may propose anything: the API decides where.
func (p *Proposal) mayPropose() bool {
	if p.change == proposals.Update {
		return p.May(access.Propose, words.DocumentOf(p.cluster).Project)
	}
	return p.MayAnywhere(access.Propose)
}

// readCluster reads what is changed; what was not typed yet is as it is.
func (p *Proposal) readCluster() error {
	name := p.form.Get("cluster")
	if err := p.API.Get("/clusters/"+url.PathEscape(name), nil, &p.cluster); err != nil {
		return err
	}
	doc := words.DocumentOf(p.cluster)
	p.view.Cluster = name
	p.title = "Change " + name
	p.crumbs = []console.Link{{Text: "Fleet", Href: "/"}, {Text: name, Href: words.ClusterHref(name)}, {Text: "Change"}}
	if doc.Template == nil || doc.Template.Name == "" {
		return call.Refusal(http.StatusConflict, name+" is not made from a version of a template: change its document in its repository", "")
	}
	if p.form.Has("template") {
		p.follow(fieldsOf(doc))
		return nil
	}
	p.form = url.Values{
		"cluster": {name}, "change": {p.change}, "template": {doc.Template.Name}, "project": {doc.Project}, "environment": {doc.Environment},
	}
	for field, value := range fieldsOf(doc) {
		p.form.Set(field, value)
		p.form.Set(wasPrefix+field, value)
	}
	return nil
}

// choices are the templates that a cluster can be made from.
func (p *Proposal) choices() error {
	found, err := call.List[v1.Template](p.API, "/templates", call.Query("limit", "1000"))
	if err != nil {
		return err
	}
	for _, t := range found.Items {
		choice := console.TemplateChoice{Name: t.Name, Why: t.Trouble}
		choice.Version = newest(t)
		if choice.Why == "" && choice.Version == "" {
			choice.Why = "No version has been released."
		}
		choice.Href = words.With(Path, call.Query("template", t.Name, "version", choice.Version, "project", p.form.Get("project"), "environment", p.form.Get("environment")))
		p.view.Templates = append(p.view.Templates, choice)
	}
	return nil
}

// newest is the newest version that can be used.
func newest(t v1.Template) string {
	for _, v := range t.Versions {
		if v.Unusable == "" && v.MovedTo == "" {
			return v.Version
		}
	}
	return ""
}

// readTemplate reads the version that is chosen, and the others. One that is gone leaves the
// fields as they were typed.
func (p *Proposal) readTemplate() error {
	name := p.view.Template
	var t v1.Template
	err := p.API.Get("/templates/"+url.PathEscape(name), nil, &t)
	if err != nil && !call.Is(err, http.StatusNotFound) {
		return err
	}
	if p.form.Get("version") == "" {
		p.form.Set("version", newest(t))
	}
	version := p.form.Get("version")
	err = p.API.Get("/templates/"+url.PathEscape(name)+"/versions/"+url.PathEscape(version), nil, &p.detail)
	if call.Is(err, http.StatusNotFound) {
		p.gone, err = err.Error(), nil
	}
	if err != nil {
		return err
	}
	field := console.Field{Name: "version", Label: "Version of " + name, Kind: "select", Whole: true}
	versions := []string{}
	for _, one := range t.Versions {
		if one.Unusable == "" && one.MovedTo == "" || one.Version == version {
			versions = append(versions, one.Version)
		}
	}
	if !slices.Contains(versions, version) {
		versions = append([]string{version}, versions...)
	}
	for _, one := range versions {
		field.Options = append(field.Options, console.Choice{Value: one, Label: one, On: one == version})
	}
	if p.gone != "" {
		field.Fault = p.gone
		p.view.Alerts = append(p.view.Alerts, console.Alert{
			Tone: "warn", Title: "This version can no longer be used", Why: words.Sentence(p.gone), Hint: "Choose another one. What you have typed is kept.",
		})
	}
	p.view.Head = append(p.view.Head, field)
	return nil
}

// ask asks the API what the form makes; a dry run shows it, with what is wrong. Nil: it was
// refused, and the form says why.
func (p *Proposal) ask(dry bool) (*v1.ProposedCluster, error) {
	if p.form.Get("cluster") == "" {
		return nil, nil // nothing can be made of it yet
	}
	req := p.request()
	if len(p.veiled) > 0 {
		for _, name := range p.veiled {
			p.view.Faults = append(p.view.Faults, console.FaultRow{Message: name + " has changed, but a part of it is not shown here: " + holdfast.SensitiveValue, Hint: "Change it in its document, or say where the secret is, such as secret: {env: NAME}"})
		}
		return nil, nil
	}
	req.DryRun = dry
	token := p.form.Get("csrf")
	if dry {
		token = p.Who.FormToken // it changes nothing, whoever has made the form
	}
	var made v1.ProposedCluster
	err := p.API.Post("/proposals", token, req, &made)
	switch {
	case err == nil:
	case call.Is(err, http.StatusForbidden) && !dry && token != p.Who.FormToken:
		p.view.Alerts = append(p.view.Alerts, console.Alert{
			Tone: "warn", Title: "You have signed in again since this form was opened", Why: "Nothing was sent. What you have typed is here: look at it, and send it again.",
		})
		return nil, nil
	case errors.As(err, new(*call.ProblemError)) && !call.Is(err, http.StatusUnauthorized): // what was typed is kept, also if a code host does not answer
		p.view.Faults = append(p.view.Faults, console.FaultRow{Message: words.Sentence(words.Unquoted(err.Error()))})
		return nil, nil
	default:
		return nil, err
	}
	p.view.Document, p.view.Place = made.Document, made.Repo+": "+made.Path
	p.view.Faults = nil
	for _, fault := range made.Faults {
		p.view.Faults = append(p.view.Faults, console.FaultRow{Place: faultAt(fault), Message: words.Sentence(words.Unquoted(fault.Message)), Hint: words.Sentence(words.Unquoted(fault.Hint))})
	}
	p.atFields(made)
	return &made, nil
}

// proposed makes the page of the pull request say what was made.
func (p *Proposal) proposed(made v1.ProposedCluster) {
	title := "Proposed as " + made.PullRequest.String()
	if made.State != string(holdfast.PullRequestOpen) {
		title = "The same was proposed before: " + made.PullRequest.String() + " is " + made.State
	}
	p.made = &Made{
		Href: words.PullRequestHref(made.PullRequest),
		Said: console.Alert{Tone: "ok", Title: title, Why: "It is planned now; somebody else has to approve it."},
	}
}
