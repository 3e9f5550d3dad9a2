// Package forms is what people do with the console: its buttons and its forms.
//
// It owns which buttons a visitor is offered on the page of a cluster, a run or a pull
// request, and what they ask before they act (Visitor); what the form of a button asks the
// API for, and what came of it (Obey); and the form for a new cluster or a change of one,
// whose fields are made from the schema of a template (Proposal). Package pages calls it,
// and answers the requests.
//
// It decides nothing: who may do what is decided by the API, which is asked by package call;
// buttons are only left out for those who may not. It writes no answer, and keeps nothing.
package forms
