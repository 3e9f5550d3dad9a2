package pages

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/proposals"
)

// NewPath is the form for a new cluster, and takes it.
const NewPath = "/new"

// maxProposal bounds the form of a document, in bytes.
const maxProposal = 1 << 20

// proposal is a form for a new cluster, or for a change of one, with what was typed.
type proposal struct {
	*visit
	form    url.Values
	change  string
	cluster v1.Cluster // that is changed
	detail  v1.TemplateDetail
	gone    string   // why the version that was chosen cannot be used
	veiled  []string // variables with a placeholder, which must not become a value
	moved   []string // fields that somebody else has changed, too, since the form was opened
	view    console.NewView

	to   string // the page of the pull request that was made; empty: none was
	said console.Alert
}

// newCluster shows the form for a new cluster, or first what it can be made from.
func (v *visit) newCluster() (console.View, error) {
	p := &proposal{visit: v, form: v.r.URL.Query(), change: proposals.Create}
	return p.show(false)
}

// changeCluster shows the form for a change of a cluster, filled in as it is.
func (v *visit) changeCluster() (console.View, error) {
	p := &proposal{visit: v, form: url.Values{"cluster": {v.r.PathValue("name")}}, change: proposals.Update}
	return p.show(false)
}

// postNew handles a form: it is shown again with the document that it makes and what is wrong
// with that or, if that is asked for, becomes a pull request. What was typed is never lost: not
// by a session that has ended, nor by a version of a template that is gone.
func (p *Pages) postNew(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxProposal)
	v := p.visit(r)
	if err := r.ParseForm(); err != nil {
		p.fail(w, v, &problemError{v1.ProblemOf(http.StatusBadRequest, "the form cannot be read: "+err.Error(), "")})
		return
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		p.fail(w, v, &problemError{v1.ProblemOf(http.StatusForbidden, "another site has made this request", "")})
		return
	}
	err := v.get("/whoami", nil, &v.who)
	if is(err, http.StatusUnauthorized) {
		p.keepTyped(w, r)
		return
	}
	asked := &proposal{visit: v, form: r.PostForm, change: cmp.Or(r.PostForm.Get("change"), proposals.Create)}
	var view console.View
	if err == nil {
		v.frame.Who, v.frame.Form, v.frame.Self = console.Who{Name: v.who.Name, Role: role(v.who)}, v.who.FormToken, NewPath
		v.navigate()
		view, err = asked.show(r.PostForm.Get("then") == "propose")
	}
	switch {
	case err != nil:
		p.fail(w, v, err)
	case asked.to != "":
		keep(w, asked.to, asked.said)
		http.Redirect(w, r, asked.to, http.StatusSeeOther)
	default:
		p.respond(w, r, http.StatusOK, v.frame, view)
	}
}

// keepTyped asks somebody whose session is over to sign in, and keeps what was typed.
func (p *Pages) keepTyped(w http.ResponseWriter, r *http.Request) {
	view := console.KeptView{Action: NewPath}
	for name, values := range r.PostForm {
		if name == "csrf" || name == "then" {
			continue
		}
		for _, value := range values {
			view.Values = append(view.Values, console.Hidden{Name: name, Value: value})
		}
	}
	slices.SortFunc(view.Values, func(a, b console.Hidden) int { return strings.Compare(a.Name, b.Name) })
	frame := console.Frame{Title: "Your session has ended", Theme: theme(r), Now: p.opts.Now(), Version: p.opts.Version, Alone: true}
	p.respond(w, r, http.StatusUnauthorized, frame, view)
}

// show fills in the form, and proposes what it makes if that is asked for and nothing is wrong
// with it.
func (p *proposal) show(proposes bool) (console.View, error) {
	p.frame.Here, p.frame.Title = "c", "New cluster"
	p.frame.Crumbs = []console.Link{{Text: "Fleet", Href: "/"}, {Text: "New cluster"}}
	p.view.Change = p.change
	if p.change == proposals.Update {
		if err := p.readCluster(); err != nil {
			return nil, err
		}
		proposes = proposes && !p.asksAgain()
	}
	if !p.mayPropose() {
		return nil, &problemError{v1.ProblemOf(http.StatusForbidden, "proposing clusters requires the role operator, and a session", "ask an administrator of Holdfast for that role, or sign in")}
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
func (p *proposal) mayPropose() bool {
	if p.change == proposals.Update {
		return p.may(access.Propose, documentOf(p.cluster).Project)
	}
	return p.mayAnywhere(access.Propose)
}

// readCluster reads what is changed; what was not typed yet is as it is.
func (p *proposal) readCluster() error {
	name := p.form.Get("cluster")
	if err := p.get("/clusters/"+url.PathEscape(name), nil, &p.cluster); err != nil {
		return err
	}
	doc := documentOf(p.cluster)
	p.view.Cluster = name
	p.frame.Title = "Change " + name
	p.frame.Crumbs = []console.Link{{Text: "Fleet", Href: "/"}, {Text: name, Href: clusterHref(name)}, {Text: "Change"}}
	if doc.Template == nil || doc.Template.Name == "" {
		return &problemError{v1.ProblemOf(http.StatusConflict, name+" is not made from a version of a template: change its document in its repository", "")}
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
func (p *proposal) choices() error {
	found, err := list[v1.Template](p.caller, "/templates", query("limit", "1000"))
	if err != nil {
		return err
	}
	for _, t := range found.Items {
		choice := console.TemplateChoice{Name: t.Name, Why: t.Trouble}
		choice.Version = newest(t)
		if choice.Why == "" && choice.Version == "" {
			choice.Why = "No version has been released."
		}
		choice.Href = with(NewPath, query("template", t.Name, "version", choice.Version, "project", p.form.Get("project"), "environment", p.form.Get("environment")))
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
func (p *proposal) readTemplate() error {
	name := p.view.Template
	var t v1.Template
	err := p.get("/templates/"+url.PathEscape(name), nil, &t)
	if err != nil && !is(err, http.StatusNotFound) {
		return err
	}
	if p.form.Get("version") == "" {
		p.form.Set("version", newest(t))
	}
	version := p.form.Get("version")
	err = p.get("/templates/"+url.PathEscape(name)+"/versions/"+url.PathEscape(version), nil, &p.detail)
	if is(err, http.StatusNotFound) {
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
			Tone: "warn", Title: "This version can no longer be used", Why: sentence(p.gone), Hint: "Choose another one. What you have typed is kept.",
		})
	}
	p.view.Head = append(p.view.Head, field)
	return nil
}

// ask asks the API what the form makes; a dry run shows it, with what is wrong. Nil: it was
// refused, and the form says why.
func (p *proposal) ask(dry bool) (*v1.ProposedCluster, error) {
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
		token = p.who.FormToken // it changes nothing, whoever has made the form
	}
	var made v1.ProposedCluster
	err := p.post("/proposals", token, req, &made)
	switch {
	case err == nil:
	case is(err, http.StatusForbidden) && !dry && token != p.who.FormToken:
		p.view.Alerts = append(p.view.Alerts, console.Alert{
			Tone: "warn", Title: "You have signed in again since this form was opened", Why: "Nothing was sent. What you have typed is here: look at it, and send it again.",
		})
		return nil, nil
	case errors.As(err, new(*problemError)) && !is(err, http.StatusUnauthorized): // what was typed is kept, also if a code host does not answer
		p.view.Faults = append(p.view.Faults, console.FaultRow{Message: sentence(unquoted(err.Error()))})
		return nil, nil
	default:
		return nil, err
	}
	p.view.Document, p.view.Place = made.Document, made.Repo+": "+made.Path
	p.view.Faults = nil
	for _, fault := range made.Faults {
		p.view.Faults = append(p.view.Faults, console.FaultRow{Place: faultAt(fault), Message: sentence(unquoted(fault.Message)), Hint: sentence(unquoted(fault.Hint))})
	}
	p.atFields(made)
	return &made, nil
}

// proposed makes the page of the pull request say what was made.
func (p *proposal) proposed(made v1.ProposedCluster) {
	title := "Proposed as " + made.PullRequest.String()
	if made.State != string(holdfast.PullRequestOpen) {
		title = "The same was proposed before: " + made.PullRequest.String() + " is " + made.State
	}
	p.to = pullRequestHref(made.PullRequest)
	p.said = console.Alert{Tone: "ok", Title: title, Why: "It is planned now; somebody else has to approve it."}
}
