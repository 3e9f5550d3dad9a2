package v1

import "github.com/holdfast-dev/holdfast"

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

// Problem is the body of every answer that is not a success (RFC 9457).
type Problem struct {
	Type     string          `json:"type"`               // The kind of problem: "urn:holdfast:problem:" and its code.
	Title    string          `json:"title"`              // What the type means.
	Status   int             `json:"status"`             // The status code of HTTP.
	Detail   string          `json:"detail,omitempty"`   // What is wrong this time.
	Hint     string          `json:"hint,omitempty"`     // What to do about it.
	Reason   holdfast.Reason `json:"reason,omitempty"`   // Why Holdfast refuses it, if that is one of its reasons.
	Command  string          `json:"command,omitempty"`  // The command of holdfast that helps.
	Instance string          `json:"instance,omitempty"` // The path that was asked for.
}

// Code is what a program decides by: what follows "urn:holdfast:problem:".
type Code string

// The codes of problems.
const (
	CodeBadRequest       Code = "bad-request"
	CodeUnauthorized     Code = "unauthorized"
	CodeForbidden        Code = "forbidden"
	CodeNotFound         Code = "not-found"
	CodeMethodNotAllowed Code = "method-not-allowed"
	CodeConflict         Code = "conflict"
	CodeTooLarge         Code = "too-large"
	CodeMisdirected      Code = "misdirected"
	CodeLocked           Code = "locked"
	CodeUnavailable      Code = "unavailable"
	CodeInternal         Code = "internal"
)

// problemPrefix is what the type of a problem begins with.
const problemPrefix = "urn:holdfast:problem:"

// titles say what the codes mean.
var titles = map[Code]string{
	CodeBadRequest:       "The request is not valid",
	CodeUnauthorized:     "The token is missing or unknown",
	CodeForbidden:        "The token does not allow this",
	CodeNotFound:         "Not found",
	CodeMethodNotAllowed: "The method is not allowed here",
	CodeConflict:         "The current state does not allow this",
	CodeTooLarge:         "The body is too large",
	CodeMisdirected:      "This is not the name of this server",
	CodeLocked:           "Somebody else holds the lock",
	CodeUnavailable:      "The server cannot answer now",
	CodeInternal:         "The server failed",
}

// codes are those of the status codes of HTTP.
var codes = map[int]Code{
	400: CodeBadRequest, 401: CodeUnauthorized, 403: CodeForbidden, 404: CodeNotFound, 405: CodeMethodNotAllowed, 409: CodeConflict,
	413: CodeTooLarge, 421: CodeMisdirected, 423: CodeLocked, 500: CodeInternal, 503: CodeUnavailable,
}

// ProblemOf returns the problem of a status code of HTTP.
func ProblemOf(status int, detail, hint string) Problem {
	code, ok := codes[status]
	if !ok {
		code = CodeInternal
	}
	return Problem{Type: problemPrefix + string(code), Title: titles[code], Status: status, Detail: detail, Hint: hint}
}

// Code returns what the problem is, empty if its type is not one of Holdfast's.
func (p Problem) Code() Code {
	if len(p.Type) <= len(problemPrefix) || p.Type[:len(problemPrefix)] != problemPrefix {
		return ""
	}
	return Code(p.Type[len(problemPrefix):])
}
