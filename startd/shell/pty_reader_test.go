package shell

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

// closingMaster is the master of a terminal that reports that it is closed before it
// returns its last lines.
type closingMaster struct{ parts []io.Reader }

func (h *closingMaster) Read(p []byte) (int, error) {
	n, err := h.parts[0].Read(p)
	if err != nil {
		if len(h.parts) > 1 {
			h.parts = h.parts[1:]
		}
		return n, &os.PathError{Op: "read", Path: "/dev/ptmx", Err: syscall.EIO}
	}
	return n, nil
}

// TestLastLines checks that the last output of a command is read. The terminal first
// reports that it is closed.
func TestLastLines(t *testing.T) {
	end := iotest.ErrReader(syscall.EIO)
	all, err := io.ReadAll(ptyReader{&closingMaster{[]io.Reader{strings.NewReader("go\r\n"),
		strings.NewReader("caught\r\n"), end}}})
	if string(all) != "go\r\ncaught\r\n" || err == nil {
		t.Errorf("%q, %v", all, err)
	}
}
