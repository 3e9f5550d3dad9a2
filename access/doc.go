// Package access says who may do what: roles, what each allows (Table), what a role is
// granted for (Grants), and who asks (Principal); and what is on record of people, their
// sessions and their tokens.
//
// The API's operations, the server's routes, the configuration and a page of the
// documentation are made from Table; datastore keeps the records; server/session and
// server/login make principals. It is pure: it reads no clock, no request and no record.
package access
