package pages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/forms"
)

// NewPath is the form for a new cluster, and takes it.
const NewPath = forms.Path

const (
	maxForm     = 64 << 10 // bytes of the form of a button
	maxProposal = 1 << 20  // bytes of the form of a document
)

// visitor is who asks for the page, with what they may do there.
func (v *visit) visitor() *forms.Visitor {
	return &forms.Visitor{API: v.API, Who: v.who, Page: v.frame.Self}
}

// act does what the form of a button asks for, by the API and in the name of whoever sent
// it, and goes back to where the button was, which says its outcome.
func (p *Pages) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	back := LocalPath(r.PostFormValue("back"))
	v := p.visit(r)
	if err := v.Get("/whoami", nil, &v.who); call.Is(err, http.StatusUnauthorized) {
		http.Redirect(w, r, "/login?next="+url.QueryEscape(back), http.StatusSeeOther)
		return
	} else if err != nil {
		p.fail(w, v, err)
		return
	}
	said, err := v.visitor().Obey(r.PostForm)
	var problem *call.ProblemError
	switch {
	case errors.As(err, &problem):
		said = forms.Refused(problem.Problem)
	case err != nil:
		p.fail(w, v, err)
		return
	}
	keep(w, back, said)
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// newCluster shows the form for a new cluster, or first what it can be made from.
func (v *visit) newCluster() (console.View, error) {
	return v.shownForm(v.visitor().Create(v.r.URL.Query()), false)
}

// changeCluster shows the form for a change of a cluster, filled in as it is.
func (v *visit) changeCluster() (console.View, error) {
	return v.shownForm(v.visitor().Change(v.r.PathValue("name")), false)
}

// shownForm shows a form, or proposes what it makes.
func (v *visit) shownForm(form *forms.Proposal, proposes bool) (console.View, error) {
	view, err := form.Show(proposes)
	v.frame.Here = "c"
	v.frame.Title, v.frame.Crumbs = form.Head()
	return view, err
}

// postNew handles a form: it is shown again with the document that it makes and what is wrong
// with that or, if that is asked for, becomes a pull request. What was typed is never lost: not
// by a session that has ended, nor by a version of a template that is gone.
func (p *Pages) postNew(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxProposal)
	v := p.visit(r)
	if err := r.ParseForm(); err != nil {
		p.fail(w, v, call.Refusal(http.StatusBadRequest, "the form cannot be read: "+err.Error(), ""))
		return
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		p.fail(w, v, call.Refusal(http.StatusForbidden, "another site has made this request", ""))
		return
	}
	err := v.Get("/whoami", nil, &v.who)
	if call.Is(err, http.StatusUnauthorized) {
		p.keepTyped(w, r)
		return
	}
	var (
		form *forms.Proposal
		view console.View
	)
	if err == nil {
		v.frame.Who, v.frame.Form, v.frame.Self = console.Who{Name: v.who.Name, Role: role(v.who)}, v.who.FormToken, NewPath
		v.navigate()
		form = v.visitor().Sent(r.PostForm)
		view, err = v.shownForm(form, r.PostForm.Get("then") == "propose")
	}
	switch {
	case err != nil:
		p.fail(w, v, err)
	case form.Made() != nil:
		keep(w, form.Made().Href, form.Made().Said)
		http.Redirect(w, r, form.Made().Href, http.StatusSeeOther)
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
