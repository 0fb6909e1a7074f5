package transfer

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestContainerProgress: a machine tells how far an image is. It counts until the image
// is there, or until the machine has been silent for long.
func TestContainerProgress(t *testing.T) {
	var files FileTransfers
	one := roost.AttemptID{Task: roost.JobID{Host: "n1", Seq: 1}.Task(0), Attempt: 1}
	two := roost.AttemptID{Task: roost.JobID{Host: "n1", Seq: 2}.Task(0), Attempt: 1}
	now := time.Now()
	NoteContainer(&files, one, &wire.ContainerProgress{Bytes: 10, Total: 40}, now.Add(-time.Second))
	NoteContainer(&files, one, &wire.ContainerProgress{Bytes: 20, Total: 40, Waits: "no server"}, now)
	NoteContainer(&files, two, &wire.ContainerProgress{Bytes: -1}, now)
	list := files.Progress(one)
	if len(list) != 1 || list[0].GetKind() != "container image" || list[0].GetBytes() != 20 ||
		list[0].GetTotal() != 40 || list[0].GetElapsed() < int64(time.Second) || list[0].GetWaits() != "no server" {
		t.Errorf("got %v", list)
	}
	if list := files.Progress(two); len(list) != 1 || list[0].GetBytes() != 0 || list[0].GetTotal() != 0 {
		t.Errorf("got %v", list)
	}
	NoteContainer(&files, one, &wire.ContainerProgress{Bytes: 40, Total: 40, Done: true}, now)
	if list := files.Progress(one); len(list) != 0 {
		t.Errorf("after the image is there: %v", list)
	}
	NoteContainer(&files, one, &wire.ContainerProgress{Bytes: 1, Total: 4}, now.Add(-roost.SilentAfter-time.Second))
	if list := files.Progress(one); len(list) != 0 {
		t.Errorf("of a machine that is silent: %v", list)
	}
	NoteContainer(&files, two, &wire.ContainerProgress{Bytes: 1}, now)
	if n := len(files.progress.containers); n != 1 {
		t.Errorf("%d images, not one", n)
	}
}
