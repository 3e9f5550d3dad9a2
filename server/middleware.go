package server

import (
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast/server/lobby"
)

// logRequests logs at debug. Queries and headers stay out: they can carry what
// is nobody's business.
func (s *base) logRequests(c *gin.Context) {
	start := time.Now()
	c.Next()
	s.log.DebugContext(c.Request.Context(), "served request",
		"method", c.Request.Method, "path", c.Request.URL.Path,
		"status", c.Writer.Status(), "duration", time.Since(start))
}

// recoverPanics answers 500 and logs the stack. An answer that was begun is cut
// off, so that it cannot be taken for a whole one.
func (s *base) recoverPanics(c *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(cause) // on purpose: see send
		}
		s.log.ErrorContext(c.Request.Context(), "recovered from panic",
			"method", c.Request.Method, "path", c.Request.URL.Path, "err", cause, "stack", string(debug.Stack()))
		if c.Writer.Written() {
			panic(http.ErrAbortHandler)
		}
		s.refuse(c, http.StatusInternalServerError, "internal error", "see the server's log")
	}()
	c.Next()
}

// guardTimes bounds how long a slow peer can hold a connection. A body has to
// arrive within Patience, or, where bodies are large, piece by piece within
// Patience each; so has each piece of an answer to leave.
func (s *base) guardTimes(large bool) gin.HandlerFunc {
	return func(c *gin.Context) {
		control, patience := http.NewResponseController(c.Writer), s.limits.Patience
		request, body := c.Request, c.Request.Body
		if c.Request.Body != nil && c.Request.Body != http.NoBody {
			// From the start: what a handler leaves unread is read by net/http.
			_ = control.SetReadDeadline(time.Now().Add(patience))
			c.Request.Body = &patientBody{ReadCloser: c.Request.Body, control: control, patience: patience, large: large}
		}
		_ = control.SetWriteDeadline(time.Time{}) // that of the connection's last request
		c.Writer = &patientWriter{ResponseWriter: c.Writer, control: control, patience: patience, request: request, body: body}
		c.Next()
		request.Body = body
		// What is still buffered is written after we return.
		_ = control.SetWriteDeadline(time.Now().Add(patience))
	}
}

type patientBody struct {
	io.ReadCloser
	control  *http.ResponseController
	patience time.Duration
	large    bool
}

func (b *patientBody) Read(p []byte) (int, error) {
	// Recorders of tests know no deadlines; all else does.
	if b.large {
		_ = b.control.SetReadDeadline(time.Now().Add(b.patience))
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		// The deadline would else end the request's context while it is worked
		// on. After any other error it stays: net/http continues to read.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

type patientWriter struct {
	gin.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	request  *http.Request
	body     io.ReadCloser // of the request, as net/http made it
}

// letGo ends the connection of a stranger after the answer: an idle one costs too
// much, and what is left of a body is nobody's. net/http gets its own body back:
// with any other it reads what was left unread before it answers, although a
// client that expects "100 Continue" never sends it.
func (w *patientWriter) letGo() {
	w.request.Body = w.body
	if !w.Written() && lobby.Stranger(w.request.Context()) {
		w.Header().Set("Connection", "close")
	}
}

func (w *patientWriter) WriteHeader(status int) {
	w.letGo()
	w.ResponseWriter.WriteHeader(status)
}

func (w *patientWriter) WriteHeaderNow() {
	w.letGo()
	w.ResponseWriter.WriteHeaderNow()
}

func (w *patientWriter) Write(p []byte) (int, error) {
	w.letGo()
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	return w.ResponseWriter.Write(p)
}

func (w *patientWriter) WriteString(s string) (int, error) {
	w.letGo()
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	return w.ResponseWriter.WriteString(s)
}

func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// send copies data to the peer. If the source fails on the way, the connection
// is cut: a chunked answer that ends well would be taken for all of it.
func (s *base) send(c *gin.Context, contentType string, data io.ReadCloser) {
	defer data.Close()
	c.Header("Content-Type", contentType)
	c.Header("X-Content-Type-Options", "nosniff")
	c.Status(http.StatusOK)
	if _, err := io.Copy(c.Writer, data); err != nil {
		s.log.WarnContext(c.Request.Context(), "cut an answer off", "path", c.Request.URL.Path, "err", err)
		panic(http.ErrAbortHandler)
	}
	c.Writer.WriteHeaderNow()
}
