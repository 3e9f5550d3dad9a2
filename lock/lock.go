package lock

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// minTTL keeps a lease longer than the resolution of Redis's clock.
const minTTL = time.Millisecond

func check(key, owner string, ttl time.Duration) error {
	switch {
	case key == "":
		return fmt.Errorf("lock: no key")
	case owner == "":
		return fmt.Errorf("lock %q: no owner", key)
	case ttl < minTTL:
		return fmt.Errorf("lock %q for %q: lease of %s is shorter than %s", key, owner, ttl, minTTL)
	}
	return nil
}

func lost(key, owner string) error {
	return fmt.Errorf("renew lock %q of %q: %w", key, owner, holdfast.ErrLockLost)
}
