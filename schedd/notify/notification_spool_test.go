package notify

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestDamagedNotices damages files of undelivered notifications in many ways. The
// notifications must be read as written, or an error must name the file, and the rest
// must be delivered.
func TestDamagedNotices(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "notices")
	spool, _, err := openSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []*queuedNotification
	for _, id := range []string{"1.h", "2.h", "3.h"} {
		queued, err := spool.write([]queue.JobNotification{testNotification(id)})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, queued...)
	}
	path, refused := spool.path(2), 0
	damage.ForEach(t, path, 100, func(what string) {
		_, got, err := openSpool(dir)
		switch {
		case err == nil && reflect.DeepEqual(got, want):
		case err != nil && strings.Contains(err.Error(), path) &&
			reflect.DeepEqual(got, []*queuedNotification{want[0], want[2]}):
			refused++
		default:
			t.Fatalf("%s: %d letters, %v", what, len(got), err)
		}
	})
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}
