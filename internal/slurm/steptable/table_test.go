package steptable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// one places a step of n processors on one machine of four.
func one(n int) func([]int) ([]int, error) {
	return func(used []int) ([]int, error) {
		if used[0]+n > 4 {
			return nil, ErrBusy
		}
		return []int{n}, nil
	}
}

func tableFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steps")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSteps(t *testing.T) {
	path := tableFile(t)
	a, err := Acquire(path, 1, one(3), nil, nil)
	if err != nil || a.Number != 0 {
		t.Fatal(a, err)
	}
	waits := make(chan struct{})
	got := make(chan *Claim)
	go func() {
		b, err := Acquire(path, 1, one(2), func() { close(waits) }, nil)
		if err != nil {
			t.Error(err)
		}
		got <- b
	}()
	<-waits
	// one that would fit is behind the one that waits
	over := make(chan struct{})
	close(over)
	if c, err := Acquire(path, 1, one(1), nil, over); !errors.Is(err, ErrInterrupted) {
		t.Errorf("%v, %v", c, err)
	}
	select {
	case <-got:
		t.Error("it has not waited")
	default:
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	select {
	case b := <-got:
		if b.Number != 1 {
			t.Errorf("it is step %d", b.Number)
		}
	case <-time.After(30 * time.Second):
		t.Error("it still waits")
	}
	if _, err := Acquire(path, 1, func([]int) ([]int, error) { return nil, os.ErrInvalid }, nil, nil); !errors.Is(err,
		os.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// TestEndedStep holds that a step whose process is gone has nothing any more.
func TestEndedStep(t *testing.T) {
	path := tableFile(t)
	if err := os.WriteFile(path, []byte(`{"Next":7,"Steps":[{"Number":6,"PID":1,"Began":1,"CPUs":[4]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Acquire(path, 1, one(4), nil, nil); err != nil || c.Number != 7 {
		t.Fatal(c, err)
	}
}

func TestDamagedTable(t *testing.T) {
	path := tableFile(t)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(path, 1, one(1), nil, nil); err == nil {
		t.Error("a damaged file is read")
	}
}
