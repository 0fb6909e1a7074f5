package idle

import (
	"context"
	"encoding/binary"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// inotifyEvent is an event of inotify(7) without a file name.
type inotifyEvent struct {
	watch int32
	mask  uint32
}

// readEvents passes on inotify events until the file is closed or ctx ends. After each
// batch with a read in it, it pauses for inputReportInterval, so that pasting a large
// text into a terminal costs nothing. The kernel merges equal events meanwhile, and an
// overflow is an event, too.
func readEvents(ctx context.Context, f *os.File, to chan<- []inotifyEvent) {
	buffer := make([]byte, 64*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	for {
		n, err := f.Read(buffer)
		if err != nil {
			return
		}
		batch := parseEvents(buffer[:n])
		select {
		case to <- batch:
		case <-ctx.Done():
			return
		}
		if !slices.ContainsFunc(batch, func(e inotifyEvent) bool { return e.mask&unix.IN_ACCESS != 0 }) {
			continue
		}
		select {
		case <-time.After(inputReportInterval):
		case <-ctx.Done():
			return
		}
	}
}

func parseEvents(text []byte) (all []inotifyEvent) {
	for len(text) >= unix.SizeofInotifyEvent {
		e := inotifyEvent{int32(binary.NativeEndian.Uint32(text)), binary.NativeEndian.Uint32(text[4:])}
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(text[12:]))
		all = append(all, e)
		text = text[min(size, len(text)):]
	}
	return all
}
