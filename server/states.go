package server

import (
	"bytes"
	"crypto/md5" // the engines' backend protocol has it; it guards against accidents only
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/statelock"
)

// maxLockInfo bounds the body of LOCK and UNLOCK.
const maxLockInfo = 64 << 10

// headerStateVersion tells which of our versions of a state an answer is about.
const headerStateVersion = "Holdfast-State-Version"

// stateOf returns whose state location the request is about. A run reaches the
// location that it excludes others from, and no other.
func (s *agentServer) stateOf(c *gin.Context) (who identity, location string, err error) {
	who, err = s.identify(c)
	if err != nil {
		return identity{}, "", err
	}
	location = strings.TrimPrefix(c.Param("location"), "/")
	if location == "" || location != who.run.StateLocation {
		return identity{}, "", fmt.Errorf("state %q is not that of run %s: %w", location, who.ref.Run, holdfast.ErrForbidden)
	}
	return who, location, nil
}

func over(who identity) error {
	if who.over {
		return fmt.Errorf("attempt %d of run %s is over: %w", who.ref.Attempt, who.ref.Run, holdfast.ErrFenced)
	}
	return nil
}

// getState answers 204 where there is no state yet. It is not 404: a proxy that
// has lost its way says 404 too, and an engine would take that for an empty
// state and build everything again.
func (s *agentServer) getState(c *gin.Context) {
	who, location, err := s.stateOf(c)
	if err == nil {
		err = over(who)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	data, version, err := s.opts.States.State(c.Request.Context(), location)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		s.noContent(c)
	case err != nil:
		s.fail(c, fmt.Errorf("read state %s: %w", location, err))
	default:
		sum := md5.Sum(data)
		c.Header("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
		c.Header(headerStateVersion, strconv.FormatInt(version.Version, 10))
		c.Data(http.StatusOK, "application/json", data)
	}
}

// putState stores what an engine wrote. An attempt that is over is refused, but
// its upload reaches the store's quarantine: an engine that was cut off from us
// may have changed the infrastructure, and this is the only account of it.
func (s *agentServer) putState(c *gin.Context) {
	who, location, err := s.stateOf(c)
	if err == nil && !who.run.Kind.Writes() {
		err = fmt.Errorf("run %s is a %s, which writes no state: %w", who.ref.Run, who.run.Kind, holdfast.ErrForbidden)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	data, err := s.readState(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	ctx, cancel := saving(c)
	defer cancel()
	version, err := s.opts.States.PutState(ctx, holdfast.StateWrite{
		Location: location, LockID: c.Query("ID"), By: who.ref, Data: data,
	})
	if err == nil {
		err = over(who) // the store must have refused it; the answer is the same if it had not
	}
	if err != nil {
		s.stateRefused(c, fmt.Errorf("store state %s: %w", location, err))
		return
	}
	c.Header(headerStateVersion, strconv.FormatInt(version.Version, 10))
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
}

func (s *agentServer) readState(c *gin.Context) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, s.limits.State))
	if err != nil {
		return nil, readError(err)
	}
	if !json.Valid(data) {
		return nil, badRequest("state of %d bytes is not JSON: it did not arrive whole", len(data))
	}
	want := c.GetHeader("Content-MD5")
	if want == "" {
		return data, nil
	}
	sum := md5.Sum(data)
	got, err := base64.StdEncoding.DecodeString(want)
	if err != nil || !bytes.Equal(got, sum[:]) {
		return nil, badRequest("Content-MD5 is not that of the state that arrived")
	}
	return data, nil
}

func (s *agentServer) lockState(c *gin.Context) {
	who, location, err := s.stateOf(c)
	if err == nil {
		err = over(who)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	lock, err := readLock(c)
	if err == nil && lock.ID == "" {
		err = badRequest("lock has no ID")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	lock.By = who.ref
	ctx, cancel := saving(c)
	defer cancel()
	if err := s.opts.States.LockState(ctx, location, lock); err != nil {
		s.stateRefused(c, fmt.Errorf("lock state %s: %w", location, err))
		return
	}
	c.Data(http.StatusOK, "application/json", lock.Info)
}

// unlockState needs the lock's id, which only its holder knows: an empty body,
// as `terraform force-unlock` sends it, releases nothing. An attempt that is over
// may still release its own lock.
func (s *agentServer) unlockState(c *gin.Context) {
	who, location, err := s.stateOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	lock, err := readLock(c)
	if err == nil && lock.ID == "" {
		err = badRequest("unlock names no lock: holdfast unlock releases one by command")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	ctx, cancel := saving(c)
	defer cancel()
	if err := s.opts.States.UnlockState(ctx, location, lock.ID, who.ref); err != nil {
		s.stateRefused(c, fmt.Errorf("unlock state %s: %w", location, err))
		return
	}
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
}

func readLock(c *gin.Context) (statelock.StateLock, error) {
	info, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxLockInfo))
	if err != nil {
		return statelock.StateLock{}, readError(err)
	}
	var lock statelock.StateLock
	if len(bytes.TrimSpace(info)) == 0 {
		return lock, nil
	}
	if err := json.Unmarshal(info, &lock); err != nil {
		return lock, badRequest("lock is not what engines send: %v", err)
	}
	lock.Info = info
	return lock, nil
}

// stateRefused is fail, with what engines expect of a lock that another holds:
// 423 and the holder's own LockInfo.
func (s *agentServer) stateRefused(c *gin.Context, err error) {
	var held *statelock.StateLockedError
	if !errors.As(err, &held) {
		s.fail(c, err)
		return
	}
	info := held.Lock.Info
	if len(info) == 0 {
		info, _ = json.Marshal(held.Lock) // strings and a time: cannot fail
	}
	c.Data(http.StatusLocked, "application/json", info)
	c.Abort()
}
