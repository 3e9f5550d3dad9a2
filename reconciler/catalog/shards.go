package catalog

import "iter"

// shardCount is in how many parts a sharded map is kept: a copy that writes to
// one of them copies that one only.
const shardCount = 256

// shards is a map that costs little to copy, whatever its size: a copy and what
// it was made from share every part that neither has written to since. The zero
// value is empty. It is not safe for concurrent use, but copies of it are, apart
// from one another.
type shards[V any] struct {
	parts [shardCount]map[string]V
	owned [shardCount]bool
	n     int
}

// shardOf spreads keys by FNV-1a.
func shardOf(key string) uint8 {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return uint8(h>>24) ^ uint8(h>>16) ^ uint8(h>>8) ^ uint8(h)
}

func (s *shards[V]) get(key string) V { return s.parts[shardOf(key)][key] }

func (s *shards[V]) len() int { return s.n }

func (s *shards[V]) set(key string, value V) {
	part := s.own(shardOf(key))
	before := len(part)
	part[key] = value
	s.n += len(part) - before
}

func (s *shards[V]) remove(key string) {
	i := shardOf(key)
	if _, ok := s.parts[i][key]; ok {
		delete(s.own(i), key)
		s.n--
	}
}

// own returns a part that is nobody else's.
func (s *shards[V]) own(i uint8) map[string]V {
	if s.owned[i] {
		return s.parts[i]
	}
	part := make(map[string]V, len(s.parts[i])+1)
	for key, value := range s.parts[i] {
		part[key] = value
	}
	s.parts[i], s.owned[i] = part, true
	return part
}

// freeze makes the map one that may be copied by assignment: what is written to
// it or to a copy from then on, the others do not see.
func (s *shards[V]) freeze() { s.owned = [shardCount]bool{} }

// copied returns a copy.
func (s *shards[V]) copied() shards[V] {
	s.freeze()
	return *s
}

// all yields the pairs in no order.
func (s *shards[V]) all() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, part := range s.parts {
			for key, value := range part {
				if !yield(key, value) {
					return
				}
			}
		}
	}
}
