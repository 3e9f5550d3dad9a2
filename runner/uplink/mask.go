package uplink

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/protocol"
)

// maskFile has the parts of the log that are secret, as a LogMask.
const maskFile = "mask.json"

// MaskLog keeps which parts of the log the server is to overwrite once it has all of it.
func (s *Session) MaskLog(spans []protocol.LogSpan) {
	data, err := json.Marshal(protocol.LogMask{Spans: spans})
	if err == nil {
		err = WriteFile(filepath.Join(s.dir, maskFile), data, nil)
	}
	if err != nil {
		s.Logger.Error("secrets that became known late stay in the log", "err", err)
	}
}

// sendMask has the server overwrite what is secret in the log that it has. It returns
// false if ctx ended first.
func (s *Session) sendMask(ctx context.Context) bool {
	data, err := os.ReadFile(filepath.Join(s.dir, maskFile))
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	var mask protocol.LogMask
	if err == nil {
		err = json.Unmarshal(data, &mask)
	}
	if err == nil && s.log.lossy() { // where something is in the server's log is not known
		mask.Spans = []protocol.LogSpan{{To: math.MaxInt64}}
	}
	if err == nil {
		_, err = Retry(ctx, trouble(s.Logger, "log was not masked yet"), func() (struct{}, error) {
			return struct{}{}, s.client.maskLog(ctx, s.AttemptRef, s.Token, mask)
		})
	}
	if err != nil && ctx.Err() != nil && !Final(err) {
		return false
	}
	if err != nil {
		s.refuse("mask of the log", err)
	}
	return true
}
