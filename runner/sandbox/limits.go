package sandbox

import (
	"bytes"
	"io"
	"sync"
)

// The words of those whom the kernel refused memory or a process. They are only looked
// for where a limit was set that the kernel does not enforce.
var (
	memoryWords = [][]byte{
		[]byte("out of memory"), []byte("cannot allocate memory"), []byte("Cannot allocate memory"),
		[]byte("Out of memory"), []byte("memory exhausted"), []byte("MemoryError"), []byte("std::bad_alloc"),
	}
	processWords = [][]byte{
		[]byte("resource temporarily unavailable"), []byte("Resource temporarily unavailable"),
		[]byte("failed to create new OS thread"), []byte("Cannot fork"), []byte("cannot fork"),
	}
)

// listener looks for words in the output of an engine. Its writers can be used
// concurrently: they write in turn, as two of them may lead to one writer.
type listener struct {
	writing           sync.Mutex
	mu                sync.Mutex
	memory, processes bool // it was said
}

// heard is one stream: w gets everything.
type heard struct {
	to   io.Writer
	l    *listener
	tail []byte // the end of what came before, shorter than a word can be
}

const longestWord = 64

func (l *listener) hear(w io.Writer) io.Writer { return &heard{to: w, l: l} }

func (h *heard) Write(p []byte) (int, error) {
	h.look(p)
	h.l.writing.Lock()
	defer h.l.writing.Unlock()
	return h.to.Write(p)
}

func (h *heard) look(p []byte) {
	if len(h.tail) > 0 {
		h.note(append(h.tail, p[:min(len(p), longestWord)]...))
	}
	h.note(p)
	h.tail = append(h.tail, p[max(0, len(p)-longestWord):]...)
	h.tail = append([]byte(nil), h.tail[max(0, len(h.tail)-longestWord):]...)
}

func (h *heard) note(b []byte) {
	memory, processes := contains(b, memoryWords), contains(b, processWords)
	if memory || processes {
		h.l.mu.Lock()
		h.l.memory = h.l.memory || memory
		h.l.processes = h.l.processes || processes
		h.l.mu.Unlock()
	}
}

func contains(b []byte, words [][]byte) bool {
	for _, word := range words {
		if bytes.Contains(b, word) {
			return true
		}
	}
	return false
}

// conclude adds to exit what the engine said about the limits that no counter tells. An
// engine that ends well was not kept from anything.
func (l *listener) conclude(exit *Exit, limits Limits) {
	if exit.Code == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memory && limits.Memory > 0 {
		exit.OutOfMemory = Probably
	}
	if l.processes && limits.Processes > 0 {
		exit.OutOfProcesses = Probably
	}
}
