package catalog

import "iter"

// Shards is a sharded map, for its own tests.
type Shards struct{ s shards[int] }

// NewShards returns an empty map.
func NewShards() *Shards { return &Shards{} }

func (s *Shards) Get(key string) int        { return s.s.get(key) }
func (s *Shards) Set(key string, value int) { s.s.set(key, value) }
func (s *Shards) Remove(key string)         { s.s.remove(key) }
func (s *Shards) Len() int                  { return s.s.len() }
func (s *Shards) Freeze()                   { s.s.freeze() }
func (s *Shards) Copied() *Shards           { return &Shards{s.s.copied()} }
func (s *Shards) All() iter.Seq2[string, int] {
	return s.s.all()
}
