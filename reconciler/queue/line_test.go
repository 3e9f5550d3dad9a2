package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// shop has things for those who wait, and counts looks.
type shop struct {
	mu     sync.Mutex
	things []int
	unsure bool
	looks  int
	wanted []int
	err    error
	during func() // a look; nil: nothing
}

func (s *shop) look(ctx context.Context, wanted int) (queue.Found[int], error) {
	if s.during != nil {
		s.during()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	s.wanted = append(s.wanted, wanted)
	if err := errors.Join(ctx.Err(), s.err); err != nil {
		return queue.Found[int]{}, err
	}
	n := min(wanted, len(s.things))
	found := queue.Found[int]{Values: slices.Clone(s.things[:n]), Unsure: s.unsure}
	s.things = s.things[n:]
	return found, nil
}

func (s *shop) put(things ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.things = append(s.things, things...)
}

func (s *shop) line() *queue.Line[int] {
	return queue.NewLine(queue.LineOptions[int]{Look: s.look, Pause: time.Second})
}

// TestOneLooksForAll: whatever wakes those who wait, how often is looked does not depend on how
// many they are, and things go to them in the order in which they came.
func TestOneLooksForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		line := s.line()
		const waiting = 200
		got := make(chan [2]int, waiting)
		for i := range waiting {
			place := line.Place()
			go func() {
				thing, ok, err := place.Next(t.Context(), time.Minute, queue.MissNone)
				if err != nil || !ok {
					thing = -1
				}
				got <- [2]int{i, thing}
			}()
			synctest.Wait()
		}
		s.looks = 0
		for range 10 {
			line.Wake() // for nothing
			synctest.Wait()
		}
		s.put(0, 1, 2)
		line.Wake()
		synctest.Wait()
		if s.looks != 11 {
			t.Errorf("%d looks for 11 words", s.looks)
		}
		for range 3 {
			if one := <-got; one[0] != one[1] || one[0] > 2 {
				t.Errorf("thing %d went to place %d", one[1], one[0])
			}
		}
		for i := 3; i < waiting; i++ {
			s.put(i)
		}
		line.Wake()
		for range waiting - 3 {
			if one := <-got; one[0] != one[1] {
				t.Errorf("thing %d went to place %d", one[1], one[0])
			}
		}
		if s.looks != 12 {
			t.Errorf("%d looks for 12 words", s.looks)
		}
	})
}

// TestWhoComesIsLookedFor: also while somebody looks, and if it does not wait.
func TestWhoComesIsLookedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{things: []int{1, 2}}
		line := s.line()
		var late sync.WaitGroup
		s.during = func() {
			s.during = nil
			late.Go(func() {
				if thing, ok, err := line.Place().Next(t.Context(), 0, queue.MissNone); thing != 2 || !ok || err != nil {
					t.Errorf("Next() = %d, %t, %v", thing, ok, err)
				}
			})
			synctest.Wait()
		}
		if thing, ok, err := line.Place().Next(t.Context(), 0, queue.MissNone); thing != 1 || !ok || err != nil {
			t.Errorf("Next() = %d, %t, %v", thing, ok, err)
		}
		late.Wait()
		if _, ok, err := line.Place().Next(t.Context(), 0, queue.MissNone); ok || err != nil || s.looks != 3 {
			t.Errorf("Next() of nothing = %t, %v, after %d looks", ok, err, s.looks)
		}
	})
}

// TestSpareThings: who cannot use what it was given gets what the look has found besides, and
// another look is made for it only if that can find more.
func TestSpareThings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		miss  queue.Miss
		more  bool
		looks int
	}{
		"held":            {queue.MissHeld, false, 1},
		"held, of many":   {queue.MissHeld, true, 1},
		"taken":           {queue.MissTaken, false, 1},
		"taken, of many":  {queue.MissTaken, true, 2},
		"not for its own": {queue.MissNever, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				line := queue.NewLine(queue.LineOptions[int]{Pause: time.Second, Look: func(context.Context, int) (queue.Found[int], error) {
					if looks++; looks > 1 {
						return queue.Found[int]{}, nil
					}
					return queue.Found[int]{Values: []int{1}, Spare: []int{2, 3}, More: test.more}, nil
				}})
				place := line.Place()
				miss := queue.MissNone
				for want := 1; want <= 3; want++ {
					if thing, ok, err := place.Next(t.Context(), 0, miss); thing != want || !ok || err != nil {
						t.Fatalf("Next() = %d, %t, %v, want %d", thing, ok, err, want)
					}
					miss = test.miss
				}
				if _, ok, err := place.Next(t.Context(), 0, miss); ok || err != nil || looks != test.looks {
					t.Errorf("Next() in the end = %t, %v, after %d looks, want %d", ok, err, looks, test.looks)
				}
			})
		})
	}
}

// TestLooksOfTheUnsure: where something may come without a word, a look is made now and then,
// one for all.
func TestLooksOfTheUnsure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{unsure: true}
		line := s.line()
		var waiting sync.WaitGroup
		for range 50 {
			waiting.Go(func() {
				if _, ok, err := line.Place().Next(t.Context(), 9500*time.Millisecond, queue.MissNone); ok || err != nil {
					t.Errorf("Next() = %t, %v", ok, err)
				}
			})
			synctest.Wait()
		}
		waiting.Wait()
		if s.looks != 50+9 { // one for each that came, and one each second
			t.Errorf("%d looks in 9.5 s", s.looks)
		}
	})
}

// TestWhoHangsUpTakesNothingAlong: whoever looks for others may hang up meanwhile, and so may
// who has just been given something.
func TestWhoHangsUpTakesNothingAlong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		line := s.line()
		ctx, hangUp := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan int, 1)
		go func() {
			_, _, err := line.Place().Next(ctx, time.Minute, queue.MissNone)
			first <- err
		}()
		synctest.Wait()
		go func() {
			thing, _, err := line.Place().Next(t.Context(), time.Minute, queue.MissNone)
			if err != nil {
				t.Error(err)
			}
			second <- thing
		}()
		synctest.Wait()
		s.during = func() { s.during = nil; hangUp() }
		s.put(5)
		line.Wake()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("who has hung up gets %v", err)
		}
		if thing := <-second; thing != 5 {
			t.Errorf("the other gets %d", thing)
		}
	})
}

// TestLookThatFails: all for whom it was made are told.
func TestLookThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		line := s.line()
		broken := errors.New("broken")
		var waiting sync.WaitGroup
		for range 5 {
			waiting.Go(func() {
				if _, ok, err := line.Place().Next(t.Context(), time.Minute, queue.MissNone); ok || !errors.Is(err, broken) {
					t.Errorf("Next() = %t, %v", ok, err)
				}
			})
		}
		synctest.Wait()
		s.looks, s.err = 0, broken
		line.Wake()
		waiting.Wait()
		if s.looks != 1 {
			t.Errorf("%d looks", s.looks)
		}
	})
}
