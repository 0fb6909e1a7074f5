package boottime

import "testing"

// TestNow: the clock never goes back.
func TestNow(t *testing.T) {
	last := Now()
	if last <= 0 {
		t.Fatalf("got %v since the boot", last)
	}
	for range 1000 {
		now := Now()
		if now < last {
			t.Fatalf("got %v after %v", now, last)
		}
		last = now
	}
}

// TestBootID: the name of a boot is a UUID, and the same each time.
func TestBootID(t *testing.T) {
	id, err := BootID()
	if again, _ := BootID(); err != nil || len(id) != 36 || again != id {
		t.Errorf("got %q and %q, %v", id, again, err)
	}
}
