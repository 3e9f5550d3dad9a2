package confined

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/policy"
)

// Serve is what runs in the process: it reads what an Evaluator writes, and writes what that
// reads. It bounds itself before it reads a policy.
func Serve(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 1<<20)
	req, err := readEnvelope(r)
	if err != nil {
		return err
	}
	if err := bound(req.Memory, req.Seconds); err != nil {
		return fmt.Errorf("bound this process: %w", err)
	}
	// Most evaluations never reach half of that, and end before a collection would pay.
	debug.SetMemoryLimit(req.Memory / 2)
	debug.SetGCPercent(400)

	// The plan is read while policies are compiled: each takes about as long.
	type read struct {
		input policy.Input
		err   error
	}
	plan := make(chan read, 1)
	go func() {
		input, err := policy.ReadInput(r, req.Context)
		plan <- read{input, err}
	}()
	set := policy.Compile(req.Sources, req.Settings)
	found := <-plan
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	if found.err != nil {
		return errors.Join(enc.Encode(line{Error: found.err.Error()}), w.Flush())
	}
	var unwritten error
	report := set.Evaluate(context.Background(), found.input, req.Limits, func(id string) {
		unwritten = errors.Join(unwritten, enc.Encode(line{Begins: id}), w.Flush())
	})
	return errors.Join(unwritten, enc.Encode(line{Report: &report}), w.Flush())
}

// readEnvelope reads its length, and what is asked for.
func readEnvelope(r *bufio.Reader) (envelope, error) {
	const most = 64 << 20
	var e envelope
	text, err := r.ReadString('\n')
	if err != nil {
		return e, fmt.Errorf("read request: %w", err)
	}
	size, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || size < 0 || size > most {
		return e, errors.New("read request: this command is started by holdfast itself")
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return e, fmt.Errorf("read request: %w", err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("read request: %w", err)
	}
	return e, nil
}
