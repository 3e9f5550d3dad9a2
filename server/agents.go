package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server/claimant"
)

const (
	// maxClaimWait is how long a claim may wait for a run.
	maxClaimWait = 30 * time.Second
	// maxLogChunk bounds one piece of a log.
	maxLogChunk = 4 << 20
	// saveTime is how long a record that has arrived whole may take to be
	// stored, whether or not its sender still waits.
	saveTime = time.Minute
)

var artefactName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// agentServer is the listeners of agents, and of the engines that they start.
type agentServer struct {
	*base
	opts      Agents
	claimants *claimant.Claimants
	uploads   uploads
}

func newAgentServer(shared *base, opts Agents) *agentServer {
	return &agentServer{base: shared, opts: opts, claimants: claimant.New(claimant.Options{
		Tokens: opts.Tokens, Runners: opts.Keys.Runners, Address: opts.Keys.Address, Now: shared.now,
	})}
}

func (s *agentServer) routes() http.Handler {
	e := s.engine(true)
	v1 := e.Group("/agent/v1")
	v1.POST("/claims", s.claim)
	v1.POST("/presence", s.present)
	v1.POST("/tickets", s.exchange)
	v1.POST("/launches/:call", s.launch)
	attempt := v1.Group("/runs/:run/attempts/:attempt")
	attempt.POST("/heartbeat", s.heartbeat)
	attempt.POST("/logs", s.appendLog)
	attempt.POST("/logs/mask", s.maskLog)
	attempt.PUT("/artefacts/:name", s.putArtefact)
	attempt.POST("/tokens", s.issueToken)
	attempt.POST("/result", s.finish)
	v1.GET("/runs/:run/artefacts/:name", s.artefact)
	v1.GET("/bundles/:digest", s.bundle)
	v1.GET("/state/*location", s.getState)
	v1.POST("/state/*location", s.putState)
	v1.Handle("LOCK", "/state/*location", s.lockState)
	v1.Handle("UNLOCK", "/state/*location", s.unlockState)
	return e
}

// claimant returns what an agent says of itself, held against its credential; false if
// it was refused.
func (s *agentServer) claimant(c *gin.Context) (protocol.ClaimRequest, claimant.Credential, bool) {
	var req protocol.ClaimRequest
	who, ok := s.credential(c)
	if !ok {
		return req, who, false
	}
	if err := decode(c, &req, false); err != nil {
		s.fail(c, err)
		return req, who, false
	}
	if req.Agent == "" {
		s.fail(c, badRequest("claim names no agent"))
		return req, who, false
	}
	if err := protocol.CheckAgentID(req.Agent); err != nil {
		s.fail(c, badRequest("agent id %.100q %v", req.Agent, err))
		return req, who, false
	}
	if err := s.claimants.Bind(who, &req); err != nil {
		s.failCredential(c, req.Agent, err)
		return req, who, false
	}
	if err := protocol.Check(req.Protocol); err != nil {
		s.refuseClaim(c, who.Name, req.Agent, refusedProtocol, err.Error())
		s.fail(c, fmt.Errorf("%w: %w", err, holdfast.ErrForbidden))
		return req, who, false
	}
	for _, word := range []*string{&req.Host, &req.Version, &req.Platform, &req.Isolation, &req.Process, &req.Folder} {
		*word = plainWord(*word)
	}
	if req.Process == "" || req.Folder == "" {
		// Without them nobody could tell it from another agent with this id.
		s.fail(c, badRequest("claim names no process or no folder: the agent is older than this server, or it is not a Holdfast agent"))
		return req, who, false
	}
	return req, who, true
}

// plainWord is what an agent says of itself, fit for a table, a log and a label.
func plainWord(s string) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), 100)]
}

func (s *agentServer) present(c *gin.Context) {
	req, who, ok := s.claimant(c)
	if !ok {
		return
	}
	if err := s.opts.Registry.Present(c.Request.Context(), req); err != nil {
		s.failClaim(c, who, req, err)
		return
	}
	s.noContent(c)
}

// failClaim answers a claim with err. A refusal of the agent is reported, too: its
// operator may look only at the server.
func (s *agentServer) failClaim(c *gin.Context, who claimant.Credential, req protocol.ClaimRequest, err error) {
	var (
		taken *protocol.AgentTakenError
		weak  *protocol.AgentIsolationError
		why   string
	)
	switch {
	case errors.As(err, &taken):
		why, err = refusedTaken, taken
	case errors.As(err, &weak):
		why, err = refusedIsolation, weak
	default:
		s.fail(c, fmt.Errorf("claim: %w", err))
		return
	}
	s.refuseClaim(c, who.Name, req.Agent, why, fmt.Sprintf("refused on %s: %s", cmp.Or(req.Host, "an unknown host"), err))
	s.fail(c, err)
}

func (s *agentServer) claim(c *gin.Context) {
	req, who, ok := s.claimant(c)
	if !ok {
		return
	}
	if kind := who.Document.Type; kind == runnerspec.KubernetesAgent {
		s.failCredential(c, req.Agent, who.Refuse(claimant.WhyKind,
			"runner %q is of type %s: its agents launch Jobs, see holdfast agent launch", who.Runner, kind))
		return
	}
	if s.isStopping() {
		s.fail(c, holdfast.ErrorOf(holdfast.ErrUnavailable, "server is stopping"))
		return
	}
	req.Wait = min(max(req.Wait, 0), maxClaimWait)

	ctx, done := s.untilStop(c.Request.Context())
	defer done()
	ctx, unwatch := s.whileInForce(ctx, who)
	defer unwatch()
	assignment, err := s.opts.Dispatcher.Claim(ctx, req)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		s.noContent(c)
	case err != nil && s.isStopping():
		s.noContent(c) // it waited, and nothing more will come
	case err != nil && errors.Is(context.Cause(ctx), errKeyRemoved):
		s.fail(c, errKeyRemoved)
	case err != nil:
		s.failClaim(c, who, req, err)
	default:
		// The agent compares deadlines with it, which are in the time of all replicas.
		c.Header("Date", s.now().UTC().Format(http.TimeFormat))
		c.JSON(http.StatusOK, assignment)
	}
}

func (s *agentServer) noContent(c *gin.Context) {
	c.Status(http.StatusNoContent)
	c.Writer.WriteHeaderNow()
}

// attemptOf returns the attempt that the request's path names, if its
// credential is that attempt's and the attempt is not over.
func (s *agentServer) attemptOf(c *gin.Context) (identity, error) {
	who, err := s.attemptNamed(c)
	if err == nil && who.over {
		err = fmt.Errorf("attempt %d of run %s is over: %w", who.ref.Attempt, who.ref.Run, holdfast.ErrFenced)
	}
	return who, err
}

// attemptNamed is attemptOf for an attempt that may be over.
func (s *agentServer) attemptNamed(c *gin.Context) (identity, error) {
	who, err := s.identify(c)
	if err == nil && (c.Param("run") != who.ref.Run || c.Param("attempt") != strconv.Itoa(who.ref.Attempt)) {
		err = fmt.Errorf("token belongs to another attempt: %w", holdfast.ErrForbidden)
	}
	return who, err
}

// fenced is an ErrFenced if the fence that a message carries is not its attempt's.
func fenced(who identity, fence int64) error {
	if fence != who.ref.Fence {
		return fmt.Errorf("fence %d of run %s is not the current one: %w", fence, who.ref.Run, holdfast.ErrFenced)
	}
	return nil
}

func (s *agentServer) heartbeat(c *gin.Context) {
	who, err := s.attemptOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	var beat protocol.Heartbeat
	if err := decode(c, &beat, false); err != nil {
		s.fail(c, err)
		return
	}
	if err := fenced(who, beat.Fence); err != nil {
		s.fail(c, err)
		return
	}
	reply, err := s.opts.Dispatcher.Heartbeat(c.Request.Context(), who.ref, beat)
	if err != nil {
		s.fail(c, fmt.Errorf("heartbeat of run %s: %w", who.ref.Run, err))
		return
	}
	c.JSON(http.StatusOK, reply)
}

// LogAnswer says at which offset an agent continues to send its log.
type LogAnswer struct {
	Next int64 `json:"next"`
}

func (s *agentServer) appendLog(c *gin.Context) {
	who, err := s.attemptOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	offset, err := strconv.ParseInt(c.Query("offset"), 10, 64)
	if err != nil || offset < 0 {
		s.fail(c, badRequest("offset %q is not a number of bytes", c.Query("offset")))
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxLogChunk))
	if err != nil {
		s.fail(c, readError(err))
		return
	}
	next, err := s.opts.Blobs.AppendLog(c.Request.Context(), who.ref, offset, data)
	if err != nil {
		s.fail(c, fmt.Errorf("append log of run %s: %w", who.ref.Run, err))
		return
	}
	c.JSON(http.StatusOK, LogAnswer{Next: next})
}

// maskLog overwrites what is secret in the log of an attempt.
func (s *agentServer) maskLog(c *gin.Context) {
	who, err := s.attemptOf(c)
	var mask protocol.LogMask
	if err == nil {
		err = decode(c, &mask, false)
	}
	if err == nil && len(mask.Spans) > protocol.MaxLogSpans {
		err = badRequest("%d parts to mask: want at most %d", len(mask.Spans), protocol.MaxLogSpans)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	if err := s.opts.Blobs.MaskLog(c.Request.Context(), who.ref, mask.Spans); err != nil {
		s.fail(c, fmt.Errorf("mask log of run %s: %w", who.ref.Run, err))
		return
	}
	c.Status(http.StatusNoContent)
}

// readError distinguishes a body that is too large from one that did not arrive.
func readError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return badRequest("body did not arrive: %v", err)
}

func (s *agentServer) putArtefact(c *gin.Context) {
	name, attempt := c.Param("name"), s.attemptOf
	if name == protocol.ArtefactErrored {
		attempt = s.attemptNamed // such a state is never too late
	}
	who, err := attempt(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	if !artefactName.MatchString(name) {
		s.fail(c, badRequest("artefact name %q: want lower-case letters, digits, dot, dash and underscore, at most 64", name))
		return
	}
	if !protocol.KnownArtefact(who.run.Kind, name) {
		s.fail(c, fmt.Errorf("a %s run leaves no artefact %q: %w", who.run.Kind, name, holdfast.ErrForbidden))
		return
	}
	if !s.uploads.begin(who.ref) {
		s.fail(c, fmt.Errorf("another artefact of attempt %d of run %s is on its way: %w", who.ref.Attempt, who.ref.Run, holdfast.ErrUnavailable))
		return
	}
	defer s.uploads.end(who.ref)
	limit := min(s.limits.Artefact, protocol.ArtefactLimit(name))
	body := &trackedReader{Reader: http.MaxBytesReader(c.Writer, c.Request.Body, limit)}
	err = s.opts.Blobs.PutArtefact(c.Request.Context(), who.ref, name, body)
	switch {
	case body.err != nil:
		s.fail(c, readError(body.err))
	case err != nil:
		s.fail(c, fmt.Errorf("store %s of run %s: %w", name, who.ref.Run, err))
	default:
		s.noContent(c)
	}
}

// trackedReader remembers why reading failed, so that a peer's broken upload does not
// count as trouble of the store.
type trackedReader struct {
	io.Reader
	err error
}

func (r *trackedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func (s *agentServer) finish(c *gin.Context) {
	who, err := s.attemptOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	var result protocol.Result
	if err := decode(c, &result, false); err != nil {
		s.fail(c, err)
		return
	}
	if err := fenced(who, result.Fence); err != nil {
		s.fail(c, err)
		return
	}
	if !result.Status.Done() {
		s.fail(c, badRequest("status %q is not one that a run ends with", result.Status))
		return
	}
	ctx, cancel := saving(c)
	defer cancel()
	if err := s.opts.Dispatcher.Finish(ctx, who.ref, result); err != nil {
		s.fail(c, fmt.Errorf("finish run %s: %w", who.ref.Run, err))
		return
	}
	s.noContent(c)
}

// saving returns the context in which something that has arrived whole is
// stored: its sender may be gone by now, it must not be lost.
func saving(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request.Context()), saveTime)
}

func (s *agentServer) artefact(c *gin.Context) {
	who, err := s.identifyLive(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	id, name := c.Param("run"), c.Param("name")
	if !artefactName.MatchString(name) {
		s.fail(c, fmt.Errorf("artefact %q: %w", name, holdfast.ErrNotFound))
		return
	}
	if id != who.ref.Run {
		owner, err := s.opts.Runs.Brief(c.Request.Context(), id)
		if err != nil {
			s.fail(c, fmt.Errorf("read run %s: %w", id, err))
			return
		}
		if owner.Cluster != who.run.Cluster {
			s.fail(c, fmt.Errorf("run %s is another cluster's: %w", id, holdfast.ErrForbidden))
			return
		}
	}
	var data io.ReadCloser
	if who.run.Kind == holdfast.RunState && id == who.ref.Run && name == protocol.ArtefactErrored {
		data, err = s.stateToPush(c.Request.Context(), id)
	} else {
		data, err = s.opts.Blobs.Artefact(c.Request.Context(), id, name)
	}
	if err != nil {
		s.fail(c, fmt.Errorf("open %s of run %s: %w", name, id, err))
		return
	}
	s.send(c, "application/octet-stream", data)
}

// stateToPush opens the state that a run of kind RunState is to push.
func (s *agentServer) stateToPush(ctx context.Context, id string) (io.ReadCloser, error) {
	run, err := s.opts.Runs.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	if job := run.State; job != nil && job.Action == holdfast.StatePush {
		return s.opts.Blobs.OpenUnsaved(ctx, job.Unsaved)
	}
	return s.opts.Blobs.Artefact(ctx, id, protocol.ArtefactErrored)
}

func (s *agentServer) bundle(c *gin.Context) {
	who, err := s.identifyLive(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	digest := holdfast.Digest(c.Param("digest"))
	if !digest.Equal(who.run.Bundle) {
		s.fail(c, fmt.Errorf("bundle %s is not that of run %s: %w", digest.Short(), who.ref.Run, holdfast.ErrForbidden))
		return
	}
	data, err := s.opts.Blobs.Bundle(c.Request.Context(), digest)
	if err != nil {
		s.fail(c, fmt.Errorf("open bundle %s: %w", digest.Short(), err))
		return
	}
	s.send(c, "application/gzip", data)
}
