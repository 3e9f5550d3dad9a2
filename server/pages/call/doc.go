// Package call asks the API for what a page of the console has, and for what its forms do.
//
// It owns how a request for a page becomes requests to the API's own handler: with the
// credentials and origin of the first (API), answers read into types of api/v1, and what
// is not a success as an error with the API's words (ProblemError). Pages and their forms
// call it, one API for each request.
//
// It opens no connection, adds no right, and keeps no answer: what somebody may not see is
// absent for the same reason as for any other client.
package call
