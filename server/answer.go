package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// ErrorAnswer is the body of every answer to an agent that is not a success.
type ErrorAnswer struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"` // what to do about it
}

// badRequestError describes the peer's mistake.
type badRequestError struct {
	status int
	text   string
	hint   string
}

func (e *badRequestError) Error() string { return e.text }

func badRequest(format string, args ...any) error {
	return &badRequestError{status: http.StatusBadRequest, text: fmt.Sprintf(format, args...)}
}

// refuse answers with an error and ends the request's handling.
func (s *base) refuse(c *gin.Context, status int, text, hint string) {
	if strings.HasPrefix(c.Request.URL.Path, "/agent/") {
		c.AbortWithStatusJSON(status, ErrorAnswer{Error: text, Hint: hint})
		return
	}
	s.problem(c, v1.ProblemOf(status, text, hint))
}

// problem answers with a problem and ends the request's handling.
func (s *base) problem(c *gin.Context, problem v1.Problem) {
	problem.Instance = c.Request.URL.Path
	data, _ := json.Marshal(problem) // texts and a number: cannot fail
	c.Data(problem.Status, v1.ProblemType, data)
	c.Abort()
}

// fail answers with the status that err means. The peer's mistakes are reported to it;
// our own failures are logged and reported as such.
func (s *base) fail(c *gin.Context, err error) {
	var (
		bad      *badRequestError
		tooLarge *http.MaxBytesError
		refused  *holdfast.RefusedError
	)
	switch {
	case errors.As(err, &bad):
		s.refuse(c, bad.status, bad.text, bad.hint)
	case errors.As(err, &tooLarge):
		s.refuse(c, http.StatusRequestEntityTooLarge, fmt.Sprintf("body is larger than %d bytes", tooLarge.Limit), "")
	case diskProblem(err) != "":
		s.log.ErrorContext(c.Request.Context(), "could not serve request", "method", c.Request.Method, "path", c.Request.URL.Path, "err", err)
		c.Header("Retry-After", "5")
		s.refuse(c, http.StatusServiceUnavailable, diskProblem(err), "check dataDir and datastore in holdfast.yaml; the server continues automatically once the problem is solved")
	case errors.Is(err, holdfast.ErrUnauthorized):
		s.refuse(c, http.StatusUnauthorized, err.Error(), "")
	case errors.Is(err, holdfast.ErrForbidden):
		s.refuse(c, http.StatusForbidden, err.Error(), "")
	case errors.Is(err, holdfast.ErrNotFound):
		s.refuse(c, http.StatusNotFound, err.Error(), "")
	case errors.As(err, &refused):
		s.problem(c, refusalOf(c, refused, err.Error()))
	case errors.Is(err, holdfast.ErrLocked):
		s.refuse(c, http.StatusLocked, err.Error(), "")
	case errors.Is(err, holdfast.ErrFenced), errors.Is(err, holdfast.ErrConflict), errors.Is(err, holdfast.ErrLockLost):
		s.refuse(c, http.StatusConflict, err.Error(), "")
	case errors.Is(err, holdfast.ErrUnavailable):
		c.Header("Retry-After", "5")
		s.refuse(c, http.StatusServiceUnavailable, err.Error(), "try again in a moment")
	case c.Request.Context().Err() != nil, errors.Is(err, context.Canceled):
		// The peer has gone: nobody reads this, and it is not our failure.
		s.refuse(c, http.StatusServiceUnavailable, "request was canceled", "try again")
	default:
		s.log.ErrorContext(c.Request.Context(), "could not serve request",
			"method", c.Request.Method, "path", c.Request.URL.Path, "err", err)
		s.refuse(c, http.StatusInternalServerError, "internal error", "see the server's log")
	}
}

// diskProblem is what is wrong with a disk of the server, in words; empty if err is not of that.
func diskProblem(err error) string {
	var disk interface{ DiskProblem() string }
	switch {
	case errors.As(err, &disk):
		return disk.DiskProblem()
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the server's disk is full"
	case errors.Is(err, syscall.EROFS):
		return "the server's disk is read-only"
	case errors.Is(err, syscall.EIO):
		return "the server's disk cannot be read or written"
	default:
		return ""
	}
}

// named says what a refusal is about, once: whoever looked for what does not exist has
// named it, too.
func named(what string, err error) error {
	if errors.Is(err, holdfast.ErrNotFound) {
		err = holdfast.ErrNotFound
	}
	return fmt.Errorf("%s: %w", what, err)
}

// missing is what does not exist, in words, and where to look.
func missing(text, hint string) error {
	return &badRequestError{status: http.StatusNotFound, text: text, hint: hint}
}

// refusalOf is the problem of what cannot be done now: the command that helps is that of
// the reason, unless the refusal has a better one.
func refusalOf(c *gin.Context, refused *holdfast.RefusedError, text string) v1.Problem {
	cluster := cmp.Or(c.Param("cluster"), c.Param("name"))
	problem := v1.ProblemOf(http.StatusConflict, text, "")
	problem.Reason, problem.Command = refused.Reason, cmp.Or(refused.Command, refused.Reason.Command(cluster))
	return problem
}

// maxMessageBytes bounds messages that are JSON. A result with thousands of
// diagnostics is the largest.
const maxMessageBytes = 8 << 20

// decode reads one JSON value of a bounded size. A strict one refuses fields
// that it does not know; agents of other versions may send some.
func decode(c *gin.Context, into any, strict bool) error {
	body := http.MaxBytesReader(c.Writer, c.Request.Body, maxMessageBytes)
	decoder := json.NewDecoder(body)
	decoder.UseNumber() // a number of more than 15 digits is that number
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(into); err != nil {
		return decodeError(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return badRequest("body has more than one JSON value")
	}
	return nil
}

func decodeError(err error) error {
	var (
		tooLarge *http.MaxBytesError
		other    *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &tooLarge):
		return err
	case errors.Is(err, io.EOF):
		return badRequest("body is empty: want JSON")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest("body is not valid: it ends within a JSON value")
	case errors.As(err, &other) && other.Field != "": // not the names of our types
		return badRequest("body is not valid: %s must not be of type %s", other.Field, other.Value)
	case other != nil:
		return badRequest("body is not valid: it must not be of type %s", other.Value)
	default:
		return badRequest("body is not valid: %v", err)
	}
}
