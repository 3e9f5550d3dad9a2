package main

import "testing"

func TestLoadOfThisMachine(t *testing.T) {
	t.Parallel()
	l, err := machineLoad()
	if err != nil || l.capacity <= 0 || l.busy <= 0 || l.busy > l.capacity {
		t.Errorf("%+v, %v", l, err)
	}
}
