// States and unlocks that wait on disk.

package uplink

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

// stateOp is a POST or an UNLOCK as it lies in the outbox: its head as a line
// of JSON, then the body.
type stateOp struct {
	Query string `json:"query"` // ID=... of the lock, as the engine sent it
	body  []byte
}

func (o stateOp) reader() io.Reader {
	head, _ := json.Marshal(o) // a string: it cannot fail
	return io.MultiReader(bytes.NewReader(append(head, '\n')), bytes.NewReader(o.body))
}

func (o stateOp) call(method string) call {
	query, _ := url.ParseQuery(o.Query)
	return call{
		method: method, query: query, kind: "application/json",
		body: bytes.NewReader(o.body), size: int64(len(o.body)), md5: md5Of(o.body),
	}
}

func readStateOp(path string) (stateOp, error) {
	file, err := os.Open(path)
	if err != nil {
		return stateOp{}, err
	}
	defer file.Close()
	r := bufio.NewReader(file)
	head, err := r.ReadBytes('\n')
	if err != nil {
		return stateOp{}, fmt.Errorf("read held state: %w", err)
	}
	var op stateOp
	if err := json.Unmarshal(head, &op); err != nil {
		return stateOp{}, fmt.Errorf("read held state: %w", err)
	}
	if op.body, err = io.ReadAll(r); err != nil {
		return stateOp{}, fmt.Errorf("read held state: %w", err)
	}
	return op, nil
}

// sendState delivers one held POST or UNLOCK.
func (s *stateRelay) sendState(ctx context.Context, name, path string) error {
	op, err := readStateOp(path)
	if err != nil {
		return &LocalError{err}
	}
	method := http.MethodPost
	if name == parcelUnlock {
		method = "UNLOCK"
	}
	res, err := s.client.do(ctx, s.stateCall(op.call(method)))
	switch {
	case err == nil:
		_ = res.Body.Close()
	case Final(err):
		s.setKnown(nil)
	default:
		return err
	}
	if name == parcelUnlock {
		s.setLocked(false)
	}
	return err
}

func md5Of(data []byte) string {
	sum := md5.Sum(data) //nolint:gosec // as above
	return base64.StdEncoding.EncodeToString(sum[:])
}
