package main

import (
	"os"
	"testing"
	"time"
)

func TestLoadOfThisMachine(t *testing.T) {
	t.Parallel()
	l, err := machineLoad()
	if err != nil || l.capacity <= 0 || l.busy <= 0 || l.busy > l.capacity {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestOwnTime(t *testing.T) {
	t.Parallel()
	before, err := ownTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Millisecond); time.Now().Before(end); {
	}
	after, err := ownTime(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("%s, then %s, %v", before, after, err)
	}
	if _, err := ownTime(4<<20 + 1); err == nil {
		t.Error("there can be no such process, and it has a time")
	}
}
