package queue

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost"
)

// TestImageKeys checks that each attempt of each task always has the same key of its own.
// The exception is a job whose secret is of an earlier release.
func TestImageKeys(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, SecretSize)
	seen := map[string]bool{}
	for index := range 3 {
		for attempt := range roost.AttemptNumber(2) {
			key := imageKey(secret, index, attempt+1)
			if again := imageKey(secret, index, attempt+1); !bytes.Equal(key, again) || len(key) != 32 {
				t.Errorf("task %d, attempt %d: got %x and %x", index, attempt+1, key, again)
			}
			seen[string(key)] = true
		}
	}
	if len(seen) != 6 || seen[string(secret)] {
		t.Errorf("got %d keys, want 6", len(seen))
	}
	if old := secret[:sharedSize]; !bytes.Equal(imageKey(old, 1, 2), old) || imageKey(nil, 1, 2) != nil {
		t.Error("the secret of an earlier release is not the key")
	}
}
